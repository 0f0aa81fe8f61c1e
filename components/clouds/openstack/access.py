"""The text of OpenStack's cloud config, by the section `openstack` and credentials that are not in it.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cloud_controller.cloud import InvalidConfiguration

from ...placeholder import PLACEHOLDER, PlaceholderSecrets
from . import environment

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
    """The text of the cloud config for a cluster. Raises InvalidConfiguration, PlaceholderSecrets or CloudError.

    A cluster that the program made is reached with the credentials of its environment; its network tells the router.
    """
    settings = _settings(config)
    if settings.get("externalNetworkId"):
        own = environment.credentials(os.environ)
        without = rendered(of_new_cluster(settings), own, cluster_id)
        return rendered(of_new_cluster(settings, _router(without, network_id)), own, cluster_id)
    secret = config.get(SECRET)
    if not secret:
        raise InvalidConfiguration(SECRET, "the stack's config has no secret", "that of the application credential")
    if secret == PLACEHOLDER:
        raise PlaceholderSecrets(f"{SECRET} is a placeholder: this run does not have the stack's secrets")
    own = {"application-credential-secret": secret, **environment.authorities(os.environ)}
    return rendered(settings, own, cluster_id)


def kubeconfig(config: Config, cluster_id: str) -> str:
    """An administrator's, from the key manager (Barbican). Raises InvalidConfiguration or CloudError."""
    from cloud_controller.clouds.openstack.config import parse

    from . import key_manager

    own = rendered(of_new_cluster(_settings(config)), environment.credentials(os.environ), cluster_id)
    return key_manager.read(parse(own), secret_name(cluster_id))


def secret_name(cluster_id: str) -> str:
    """The name in the key manager of an administrator's kubeconfig."""
    return f"cloud-controller/{cluster_id}/kubeconfig"


def of_new_cluster(settings: Mapping[str, Any], router_id: str | None = None) -> dict[str, Any]:
    """The section `openstack` of a new cluster, with what the program made for it."""
    balancers = {**(settings.get("loadBalancers") or {})}
    balancers["floatingNetworkId"] = balancers.get("floatingNetworkId") or settings["externalNetworkId"]
    return {**settings, "routerId": router_id, "loadBalancers": balancers}


def rendered(settings: Mapping[str, Any], credentials: Mapping[str, str], cluster_id: str) -> str:
    """The text of a cloud config.

    `settings`: the section `openstack` as in a stack file. `credentials`: further keys of `[Global]`.
    """
    balancers = settings.get("loadBalancers") or {}
    return "".join(
        [
            *_section("Global", _GLOBAL, settings, {"cluster-id": cluster_id, **credentials}),
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


def _settings(config: Config) -> dict[str, Any]:
    """The config's section `openstack`, which the engine hands over as JSON text.

    Without `caFile`, which is in the daemon's container: this program finds its authorities by `OS_CACERT`.
    """
    settings = config.get("openstack") or {}
    found: dict[str, Any] = json.loads(settings) if isinstance(settings, str) else settings
    return {key: value for key, value in found.items() if key != "caFile"}


def _router(cloud_config: str, network_id: str) -> str:
    """The ID of the one router in a network."""
    from cloud_controller.clouds.openstack.cloud import connect
    from cloud_controller.clouds.openstack.config import parse
    from cloud_controller.clouds.openstack.names import ROUTER_INTERFACES

    client = connect(parse(cloud_config))
    ports = client.list("network", "ports", "ports", network_id=network_id, device_owner=ROUTER_INTERFACES)
    routers = sorted({str(port["device_id"]) for port in ports})
    if len(routers) != 1:
        found = ", ".join(routers) or "none"
        raise InvalidConfiguration(f"network {network_id}", f"its routers: {found}", "the one that the program made")
    return routers[0]


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
