"""How much of the project's quotas is used, for `cloud-controller doctor`: Octavia's, and Neutron's for addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from cloud_controller.cloud import Quota
from cloud_controller.clouds.openstack.client import OpenStackClient

_FLOATING_IPS = {"floatingip": "floating IPs"}
_SECURITY_GROUPS = {"security_group": "security groups", "security_group_rule": "rules of security groups"}
"""By Neutron's names of resources, as those."""
_OCTAVIAS = {
    "load_balancer": ("load balancers", "loadbalancers"),
    "listener": ("listeners", "listeners"),
    "pool": ("pools", "pools"),
    "health_monitor": ("health monitors", "healthmonitors"),
}
"""By Octavia's names of resources: what they are, and their lists."""


def quotas(client: OpenStackClient, controllers: Collection[str], *, groups: bool) -> Sequence[Quota]:
    """See `Quotas.quotas`: what the service controller creates, and everybody else in the project.

    `groups`: it creates security groups too.
    """
    if "service" not in controllers:
        return []
    return [*_of_neutron(client, _FLOATING_IPS | (_SECURITY_GROUPS if groups else {})), *_of_octavia(client)]


def _of_neutron(client: OpenStackClient, names: Mapping[str, str]) -> Iterator[Quota]:
    told = client.get("network", f"quotas/{client.project}/details")["quota"]
    for name, of in names.items():
        quota = told.get(name, {"limit": -1})
        if quota["limit"] >= 0:
            yield Quota(of, quota["used"] + quota["reserved"], quota["limit"])


def _of_octavia(client: OpenStackClient) -> Iterator[Quota]:
    """Octavia tells limits alone; whatever has one is counted."""
    told = client.get("load-balancer", f"lbaas/quotas/{client.project}")["quota"]
    limits = {name: limit for name, limit in told.items() if limit >= 0}
    for name, (of, kind) in _OCTAVIAS.items():
        if name in limits:
            yield Quota(of, len(client.list("load-balancer", f"lbaas/{kind}", kind)), limits[name])
    if "member" in limits:
        pools = client.list("load-balancer", "lbaas/pools", "pools")
        yield Quota("members of pools", sum(len(pool["members"]) for pool in pools), limits["member"])
