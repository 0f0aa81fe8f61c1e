"""The quotas that doctor judges: of what the service controller creates, asked of the services themselves."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Quota, Quotas
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions
from cloud_controller.clouds.openstack.permissions import DOCTOR, SECURITY_GROUPS, requests
from tests.cloud_controller.clouds.openstack.site import Site

pytestmark = pytest.mark.integration

LIMITS = {"load_balancer": 10, "listener": 20, "pool": 20, "health_monitor": 5, "member": 50}


def limit(openstack: Site, floatingip: int, **limits: int) -> None:
    """In Neutron and in Octavia."""
    openstack.peer.admin.put("network", f"quotas/{openstack.project.id}", {"quota": {"floatingip": floatingip}})
    openstack.peer.admin.put("load-balancer", f"lbaas/quotas/{openstack.project.id}", {"quota": limits})


def quotas(openstack: Site, controller: str = "service", *, groups: bool = False) -> list[Quota]:
    cloud = openstack.cloud(load_balancers=LoadBalancerOptions(manage_security_groups=groups))
    assert isinstance(cloud, Quotas)
    return [quota for read in cloud.quotas([controller]) for quota in read()]


def test_what_everybody_in_the_project_made_is_counted(openstack: Site) -> None:
    limit(openstack, 50, **LIMITS)
    subnet = openstack.nodes[1][0]["id"]
    member = {"address": "10.1.0.9", "protocol_port": 80}
    pool = {"name": "theirs", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [member]}
    listener = {"name": "theirs", "protocol": "TCP", "protocol_port": 80, "default_pool": pool}
    body = {"loadbalancer": {"name": "theirs", "vip_subnet_id": subnet, "listeners": [listener]}}
    openstack.project.api.post("load-balancer", "lbaas/loadbalancers", body)

    assert quotas(openstack) == [
        Quota("floating IPs", 0, 50),
        Quota("load balancers", 1, 10),
        Quota("listeners", 1, 20),
        Quota("pools", 1, 20),
        Quota("health monitors", 0, 5),
        Quota("members of pools", 1, 50),
    ]


def test_security_groups_are_counted_where_the_controller_makes_them(openstack: Site) -> None:
    openstack.project.api.post("network", "security-groups", {"security_group": {"name": "theirs"}})

    groups, rules = quotas(openstack, groups=True)

    # Neutron makes the default group too, and does not count the rules that it makes with a group.
    assert groups == Quota("security groups", 2, 10)
    assert rules == Quota("rules of security groups", 0, 100)


def test_what_is_unlimited_is_not_counted(openstack: Site) -> None:
    limit(openstack, -1, **dict.fromkeys(LIMITS, -1))

    calls = openstack.calls(lambda: quotas(openstack))

    assert [call for call in calls if "quotas" not in call and "identity" not in call] == []


def test_where_no_controller_makes_load_balancers_nothing_is_read(openstack: Site) -> None:
    assert openstack.calls(lambda: quotas(openstack, "node")) == {}


def test_doctor_needs_two_rights_more_than_the_service_controller(openstack: Site) -> None:
    limit(openstack, 50, **LIMITS)
    seen: set[str] = set()
    cloud = openstack.cloud(load_balancers=LoadBalancerOptions())
    cloud.observe_calls(lambda operation, _seconds, _error: seen.add(operation))

    assert [quota for read in cloud.quotas(["service"]) for quota in read()]

    needed = seen - {*requests(["service", SECURITY_GROUPS])} - {"POST identity auth/tokens"}
    assert needed == {*requests([DOCTOR])}
