"""Checks that AWS accepts the credentials, and gives access to an EKS cluster with them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Collection
from typing import Any

import yaml
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError

from cloud_controller import logs
from cloud_controller.cloud import NotFound, Unavailable
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import CLUSTER_PREFIX
from cloud_controller.clouds.aws.errors import translated
from cloud_controller.clouds.aws.tags import tags_of
from cloud_controller.load_balancers.model import CLUSTER_TAG

_TOKEN_PREFIX = "k8s-aws-v1."
_CLUSTER_HEADER = "x-k8s-aws-id"
_SIGNED_FOR = 60
"""Seconds for which the signature is valid; EKS accepts the token for 15 minutes."""

_log = logging.getLogger(__name__)


def check(api: Api) -> None:
    """Raise unless AWS accepts the credentials: one call, which needs no permission.

    Permissions are not checked, because reading them needs a permission of its own; a refused operation names itself
    in its error.
    """
    who = api.call("sts", "GetCallerIdentity")
    _log.info("AWS accepted the credentials arn=%s region=%s", who.get("Arn", "?"), api.region)


def kubeconfig(api: Api) -> str:
    """A kubeconfig of the EKS cluster that the cloud config names, with a token that expires within 15 minutes.

    Raises NotFound if EKS has no such cluster, Unavailable if it is not reachable yet.
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


def has_cluster(api: Api) -> bool | None:
    """Whether EKS has the cluster. None if not: clusters that run on machines of their own have such an ID too."""
    try:
        api.call("eks", "DescribeCluster", name=api.config.cluster_id)
    except NotFound:
        return None
    return True


def cluster_ids(api: Api) -> Collection[str]:
    """The IDs in the tags of machines and of security groups, which load balancers have."""
    machines = api.pages("ec2", "DescribeInstances", "Reservations", MaxResults=1000)
    found = [each for reservation in machines for each in reservation["Instances"]]
    found += api.pages("ec2", "DescribeSecurityGroups", "SecurityGroups")
    tags = [tags_of(each) for each in found]
    keys = {key.removeprefix(CLUSTER_PREFIX) for each in tags for key in each if key.startswith(CLUSTER_PREFIX)}
    return keys | {each[CLUSTER_TAG] for each in tags if CLUSTER_TAG in each}


def token(api: Api, cluster: str) -> str:
    """A bearer token for the cluster: a presigned GetCallerIdentity request, which the API server sends to AWS."""
    client = api.signing_client("sts", "GetCallerIdentity", _naming(cluster))
    try:
        url = client.generate_presigned_url("get_caller_identity", ExpiresIn=_SIGNED_FOR, HttpMethod="GET")
    except (BotoCoreError, ClientError, OSError) as error:
        raise translated(error, "sts", "GetCallerIdentity") from error
    bearer = _TOKEN_PREFIX + base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode()
    logs.hide(bearer)
    return bearer


def _naming(cluster: str) -> Any:
    """Sign the cluster's name too, so that the token is not valid for other clusters."""

    def add_header(request: AWSRequest, **_: Any) -> None:
        request.headers[_CLUSTER_HEADER] = cluster

    return add_header
