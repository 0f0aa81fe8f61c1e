"""Whether AWS takes our credentials, and how a cluster that AWS runs is reached with them."""

from __future__ import annotations

import base64
import logging
from typing import Any

import yaml
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from cloud_controller import logs
from cloud_controller.cloud import Unavailable
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.errors import translated

_TOKEN_PREFIX = "k8s-aws-v1."
_CLUSTER_HEADER = "x-k8s-aws-id"
_SIGNED_FOR = 60
"""Seconds for which the signature holds; EKS takes the token for 15 minutes."""

_log = logging.getLogger(__name__)


def check(api: Api) -> None:
    """Raise unless AWS knows the credentials: one call, which needs no right.

    Which rights they have, AWS tells nobody without a right of its own to ask; an operation that is refused names
    itself, where it is refused.
    """
    who = api.call("sts", "GetCallerIdentity")
    _log.info("AWS accepted the credentials arn=%s region=%s", who.get("Arn", "?"), api.region)


def kubeconfig(api: Api) -> str:
    """A kubeconfig of the EKS cluster of the cloud config's id, with a token that ends within 15 minutes.

    Raises NotFound where EKS has no such cluster, Unavailable where it is not reachable yet.
    """
    name = api.config.cluster_id
    cluster = api.call("eks", "DescribeCluster", name=name)["cluster"]
    endpoint, authority = cluster.get("endpoint"), (cluster.get("certificateAuthority") or {}).get("data")
    if not endpoint or not authority:
        raise Unavailable(f"AWS: EKS cluster {name} has no endpoint yet (status {cluster.get('status', 'unknown')})")
    bearer = token(api, name)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {"name": name, "cluster": {"server": endpoint, "certificate-authority-data": authority}},
        ],
        "users": [{"name": name, "user": {"token": bearer}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    return yaml.safe_dump(document, sort_keys=False)


def token(api: Api, cluster: str) -> str:
    """A bearer token for the cluster: a signed request of GetCallerIdentity, which its API server lets AWS answer."""
    client = api.signing_client("sts", "GetCallerIdentity", _naming(cluster))
    try:
        url = client.generate_presigned_url("get_caller_identity", ExpiresIn=_SIGNED_FOR, HttpMethod="GET")
    except (BotoCoreError, ClientError, OSError) as error:
        raise translated(error, "sts", "GetCallerIdentity") from error
    bearer = _TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode()
    logs.hide(bearer)
    return bearer


def _naming(cluster: str) -> Any:
    """The cluster's name is part of what is signed, so the token opens no other cluster."""

    def add_header(request: AWSRequest, **_: Any) -> None:
        request.headers[_CLUSTER_HEADER] = cluster

    return add_header
