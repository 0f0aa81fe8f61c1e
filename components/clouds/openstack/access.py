"""The text of OpenStack's cloud config, by the section `openstack` and the secret beside it.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cloud_controller.cloud import InvalidConfiguration

from ...placeholder import PLACEHOLDER, PlaceholderSecrets

if TYPE_CHECKING:
    from pulumi.dynamic.config import Config

SECRET = "openstackSecret"

_GLOBAL = {
    "authUrl": "auth-url",
    "region": "region",
    "interface": "os-endpoint-type",
    "caFile": "ca-file",
    "applicationCredentialId": "application-credential-id",
}
_NETWORKING = {
    "internalNetworks": "internal-network-name",
    "publicNetworks": "public-network-name",
    "addressSortOrder": "address-sort-order",
}
_NETWORKS = {
    "floatingNetworkId": "floating-network-id",
    "floatingSubnetId": "floating-subnet-id",
    "floatingSubnet": "floating-subnet",
    "floatingSubnetTags": "floating-subnet-tags",
    "networkId": "network-id",
    "subnetId": "subnet-id",
    "memberSubnetId": "member-subnet-id",
}
_LOAD_BALANCERS = _NETWORKS | {
    "internal": "internal-lb",
    "method": "lb-method",
    "flavorId": "flavor-id",
    "availabilityZone": "availability-zone",
    "createMonitor": "create-monitor",
    "monitorDelay": "monitor-delay",
    "monitorTimeout": "monitor-timeout",
    "monitorMaxRetries": "monitor-max-retries",
    "monitorMaxRetriesDown": "monitor-max-retries-down",
    "manageSecurityGroups": "manage-security-groups",
    "nodeSelector": "node-selector",
}
"""By the key of the stack file: the key of the cloud config."""


def cloud_config(config: Config, cluster_id: str, network_id: str) -> str:
    """The text of the cloud config for a cluster. Raises InvalidConfiguration, or PlaceholderSecrets."""
    del network_id
    settings = config.get("openstack")
    if isinstance(settings, str):
        settings = json.loads(settings)
    secret = config.get(SECRET)
    if not isinstance(settings, dict) or not secret:
        raise InvalidConfiguration(SECRET, "the stack's config has no secret", "that of the application credential")
    if secret == PLACEHOLDER:
        raise PlaceholderSecrets(f"{SECRET} is a placeholder: this run does not have the stack's secrets")
    return rendered(settings, secret, cluster_id)


def rendered(settings: Mapping[str, Any], secret: str, cluster_id: str) -> str:
    """The text of a cloud config. `settings`: the section `openstack` as in a stack file."""
    more = {"cluster-id": cluster_id, "application-credential-secret": secret}
    balancers = settings.get("loadBalancers") or {}
    return "".join(
        [
            *_section("Global", _GLOBAL, settings, more),
            *_section("Networking", _NETWORKING, settings),
            *_section("Route", {"routerId": "router-id"}, settings),
            *_section("LoadBalancer", _LOAD_BALANCERS, balancers),
            *(
                line
                for name, networks in (balancers.get("classes") or {}).items()
                for line in _section(f'LoadBalancerClass "{name}"', _NETWORKS, networks)
            ),
        ]
    )


def _section(
    name: str, keys: Mapping[str, str], settings: Mapping[str, Any], more: Mapping[str, str] | None = None
) -> Iterable[str]:
    from cloud_controller.clouds.common.gcfg import written

    found = [
        *(more or {}).items(),
        *((key, text) for given, key in keys.items() for text in _texts(key, settings.get(given))),
    ]
    if found:
        yield f"[{name}]\n"
        yield from (f"{key} = {written(text)}\n" for key, text in found)


def _texts(key: str, value: Any) -> Iterable[str]:
    """A repeated key has a line for each text; of other lists, one line has all."""
    if isinstance(value, list) and not key.endswith("-network-name"):
        value = ",".join(value) or None
    for each in value if isinstance(value, list) else (value,):
        if each is not None:
            yield str(each).lower() if isinstance(each, bool) else str(each)
