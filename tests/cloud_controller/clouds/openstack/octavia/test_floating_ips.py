"""Floating IPs on the real Neutron: from which of several subnets they come."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from local.openstack.peer import Peer
from tests.cloud_controller.clouds.openstack.octavia.account import OctaviaAccount, SharedNetworks
from tests.cloud_controller.clouds.openstack.octavia.services import named, nodes
from tests.cloud_controller.load_balancing import port, served, service

pytestmark = pytest.mark.integration


@pytest.fixture
def openstack_networks(openstack_peer: Peer) -> SharedNetworks:
    """Those that no other test uses."""
    return SharedNetworks(openstack_peer, gold="203.0.113.0/24", silver="198.51.100.0/24")


def fill_the_first_subnet(account: OctaviaAccount) -> str:
    """Leave no free address in the external subnet that is tried first. Return the ID of the other one."""
    listed = account.api.get("network", f"subnets?network_id={account.networks.public}")["subnets"]
    first, other = sorted(listed, key=lambda each: str(each["id"]))
    last = first["cidr"].replace(".0/24", ".200")
    pool = {"subnet": {"allocation_pools": [{"start": last, "end": last}]}}
    account.site.peer.admin.put("network", f"subnets/{first['id']}", pool)
    body = {"floatingip": {"floating_network_id": account.networks.public, "subnet_id": first["id"]}}
    account.api.post("network", "floatingips", body)
    return str(other["id"])


def test_a_full_subnet_is_passed_over_for_one_with_a_free_address(account: OctaviaAccount) -> None:
    other = fill_the_first_subnet(account)
    cluster = nodes("node1")

    served(account, cluster, service(named(floating_subnet_tags="v4"), port(80)))

    (ip,) = cluster.ingress
    (subnet,) = account.api.get("network", f"subnets?id={other}")["subnets"]
    assert ip["ip"].startswith(subnet["cidr"].removesuffix("0/24"))


@pytest.mark.parametrize(
    ("description", "taken"),
    [("Service shop/web of cluster c-2, UID uid-9", False), ("Service default/web of the old site", True), ("", True)],
)
def test_a_free_floating_ip_that_was_made_for_another_is_not_taken(
    account: OctaviaAccount, description: str, taken: bool
) -> None:
    body = {"floating_network_id": account.networks.public, "description": description}
    address = account.api.post("network", "floatingips", {"floatingip": body})["floatingip"]["floating_ip_address"]
    cluster = nodes("node1")

    with nullcontext() if taken else pytest.raises(InvalidConfiguration, match="made for another: Service shop/web"):
        served(account, cluster, service({}, port(80), loadBalancerIP=address))

    assert [each["ip"] for each in cluster.ingress] == ([address] if taken else [])
