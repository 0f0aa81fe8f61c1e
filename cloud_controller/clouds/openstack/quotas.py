"""How much of the project's quotas is used, for `cloud-controller doctor`: Octavia's, and Neutron's for addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from cloud_controller.cloud import Quota
from cloud_controller.clouds.openstack.client import OpenStackClient

_FLOATING_IPS = {"floatingip": "floating IPs"}
_SECURITY_GROUPS = {"security_group": "security groups", "security_group_rule": "rules of security groups"}
"""By Neutron's names of resources, as those."""
_LISTS = {
    "load_balancer": ("load balancers", "loadbalancers"),
    "listener": ("listeners", "listeners"),
    "pool": ("pools", "pools"),
    "health_monitor": ("health monitors", "healthmonitors"),
}
"""By Octavia's names of resources: what they are, and where they are listed."""


def quotas(
    client: OpenStackClient, controllers: Collection[str], *, groups: bool
) -> Sequence[Callable[[], Sequence[Quota]]]:
    """See `Quotas.quotas`: what the service controller creates, and everybody else in the project.

    `groups`: it creates security groups too.
    """
    if "service" not in controllers:
        return []
    of_neutron = _FLOATING_IPS | (_SECURITY_GROUPS if groups else {})
    return [lambda: _of_neutron(client, of_neutron), lambda: _of_octavia(client)]


def _of_neutron(client: OpenStackClient, names: Mapping[str, str]) -> Sequence[Quota]:
    told = client.get("network", f"quotas/{client.project}/details")["quota"]
    limited = {name: told[name] for name in names if name in told and told[name]["limit"] >= 0}
    return [Quota(names[name], each["used"] + each["reserved"], each["limit"]) for name, each in limited.items()]


def _of_octavia(client: OpenStackClient) -> Sequence[Quota]:
    """Octavia tells limits alone; whatever has one is counted."""
    project = client.project
    told = client.get("load-balancer", f"lbaas/quotas/{project}")["quota"]
    limits = {name: told[name] for name in (*_LISTS, "member") if told.get(name, -1) >= 0}
    found = {
        name: client.list("load-balancer", f"lbaas/{kind}", kind, project_id=project)
        for name, (_, kind) in _LISTS.items()
        if name in limits or (name == "pool" and "member" in limits)
    }
    counted = [Quota(_LISTS[name][0], len(each), limits[name]) for name, each in found.items() if name in limits]
    if "member" in limits:
        counted.append(Quota("members of pools", sum(len(each["members"]) for each in found["pool"]), limits["member"]))
    return counted
