"""How a dynamic provider reaches Alibaba Cloud: by the stack's config, and by the access key of its environment.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloud_controller.cloud import InvalidConfiguration

if TYPE_CHECKING:
    from pulumi.dynamic.config import Config

    from cloud_controller.clouds.alicloud.config import AccessKey, Network

KUBECONFIG = "kubeconfig"
"""The last part of the name of the secret that holds an administrator's kubeconfig of a control plane on ECS."""
_KEYS = (
    ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"),
    ("ALICLOUD_ACCESS_KEY", "ALICLOUD_SECRET_KEY"),
)
"""Where Pulumi's provider for Alibaba Cloud reads an access key, too."""


def secret_name(cluster_id: str, key: str) -> str:
    """The name in KMS of what the machines of a control plane on ECS share."""
    return f"cloud-controller/{cluster_id}/{key}"


def cloud_config(config: Config, cluster_id: str, network_id: str) -> str:
    """The text of the cloud config for a cluster. Raises InvalidConfiguration without a region."""
    return rendered(_settings(config), cluster_id, network_id, _access_key())


def rendered(
    settings: Mapping[str, Any],
    cluster_id: str,
    network_id: str,
    key: AccessKey | None = None,
    network: Network = "public",
) -> str:
    """The text of a cloud config by the section `alicloud`, for a reader in this network.

    Without a key its reader has a role, of its pod or of its machine.
    """
    from cloud_controller.clouds.alicloud.config import METADATA, render
    from cloud_controller.clouds.alicloud.config import Config as CloudConfig
    from cloud_controller.clouds.alicloud.names import VERSIONS

    existing = settings.get("existing") or {}
    return render(
        CloudConfig(
            cluster_id=cluster_id,
            vpc_id=network_id,
            region=settings["region"],
            vswitch_id=existing.get("vswitchId"),
            route_table_ids=tuple(existing.get("routeTableIds") or ()),
            access_key=key,
            network=network,
            endpoints=dict.fromkeys((*VERSIONS, METADATA), settings["endpoint"]) if settings.get("endpoint") else {},
            # ACK's own CCM serves the class of NLBs that both know.
            serve_nlb_class=settings.get("controlPlane") == "ecs",
        )
    )


def kubeconfig(config: Config, cluster_id: str) -> str:
    """An administrator's: from ACK, or from KMS, where the control plane is on ECS. Raises CloudError."""
    from cloud_controller.clouds.alicloud.client import Client
    from cloud_controller.clouds.alicloud.config import Config as CloudConfig
    from cloud_controller.clouds.alicloud.credentials import of_config
    from cloud_controller.clouds.alicloud.endpoints import endpoint

    settings = _settings(config)
    region = settings["region"]
    of = CloudConfig(cluster_id=cluster_id, vpc_id="", region=region, access_key=_access_key())
    client = Client(region, lambda product: endpoint(of, product), of_config(of, os.environ))
    if settings.get("controlPlane") == "ecs":
        query = {"SecretName": secret_name(cluster_id, KUBECONFIG)}
        found = client.read(f"https://kms.{region}.aliyuncs.com", "2016-01-20", "GetSecretValue", query=query)
        return str(found["SecretData"])
    query = {"PrivateIpAddress": "false" if settings.get("publicApi") else "true"}
    path = f"/k8s/{cluster_id}/user_config"
    host = f"https://cs.{region}.aliyuncs.com"
    return str(client.read(host, "2015-12-15", "DescribeClusterUserKubeconfig", path, query)["config"])


def _access_key() -> AccessKey | None:
    from cloud_controller.clouds.alicloud.config import AccessKey

    for key_id, secret in _KEYS:
        if os.environ.get(key_id) and os.environ.get(secret):
            return AccessKey(os.environ[key_id], os.environ[secret])
    return None


def _settings(config: Config) -> dict[str, Any]:
    """The config's section `alicloud`, which the engine hands over as JSON text."""
    settings = config.get("alicloud")
    if isinstance(settings, str):
        settings = json.loads(settings)
    if not isinstance(settings, dict) or not settings.get("region"):
        raise InvalidConfiguration("alicloud", "the stack's config has no region", "{region: such as cn-hangzhou}")
    return settings
