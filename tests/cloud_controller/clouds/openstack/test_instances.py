"""Servers as machines of nodes, at the real Nova: as the Go controller's recordings show them, in fewer calls."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import InstanceRef, InstanceState, InvalidConfiguration, NodeAddress
from cloud_controller.clouds.openstack.config import Networking
from tests.cloud_controller.clouds.openstack.site import Site

pytestmark = pytest.mark.integration

LIST, READ = "GET compute /v2.1/servers/detail", "GET compute /v2.1/servers/ID"


def test_many_nodes_of_any_kind_take_one_listing(openstack: Site) -> None:
    ids = [openstack.server(f"node{number}") for number in range(5)]
    refs = [InstanceRef("node0"), InstanceRef("node1", ids[1]), InstanceRef("node2", f"openstack:///{ids[2]}")]
    more = [InstanceRef("node3", f"openstack://RegionOne/{ids[3]}"), InstanceRef("node4")]
    instances = openstack.cloud().instances
    # However slow the services are: the batches of one pass come within seconds.
    instances._cache.clock = lambda: 0.0

    calls = openstack.calls(lambda: (instances.describe(refs), instances.describe(more)))

    found = instances.describe([*refs, *more])
    assert (calls.get(LIST), calls.get(READ)) == (1, None)
    assert [each.id for each in found.values() if each] == ids


def test_a_server_has_the_name_of_its_flavor_its_zone_and_region(openstack: Site) -> None:
    openstack.server("node0")

    (found,) = openstack.cloud().instances.list()

    assert (found.name, found.type, found.zone, found.region) == ("node0", "m1.small", "nova", "RegionOne")
    assert found.provider_id == f"openstack:///{found.id}"


def test_provider_ids_have_the_region_where_they_should(openstack: Site) -> None:
    openstack.server("node0")

    (found,) = openstack.cloud(regional=True).instances.list()

    assert found.provider_id == f"openstack://RegionOne/{found.id}"


def test_a_server_that_is_shut_off_is_stopped(openstack: Site) -> None:
    server = openstack.server("node0")
    openstack.project.set_server(server, vm_state="stopped", power_state=4)

    (found,) = openstack.cloud().instances.list()

    assert found.state is InstanceState.STOPPED


def test_servers_are_found_by_the_host_names_that_nova_makes_of_their_names(openstack: Site) -> None:
    names = [
        "K8S-Worker-1",
        "pool-v1.26.4-abc",
        "my worker_1",
        "Ärger+ (1).",
        "節点",
        "节点-a",
        f"{'long' * 20}.example",
    ]
    ids = [openstack.server(name) for name in names]
    refs = [InstanceRef(openstack.project.host_name(each).lower()) for each in ids]

    found = openstack.cloud().instances.describe(refs)

    assert [each and each.id for each in found.values()] == ids


def test_a_server_is_found_by_a_name_with_dots_that_its_kubelet_was_given(openstack: Site) -> None:
    server = openstack.server("Node0.example.com")

    (found,) = openstack.cloud().instances.describe([InstanceRef("node0.example.com")]).values()

    assert found is not None
    assert found.id == server


def test_a_server_of_another_region_is_not_looked_for(openstack: Site) -> None:
    server = openstack.server("node0")

    with pytest.raises(InvalidConfiguration, match="is not in RegionOne"):
        openstack.cloud().instances.describe([InstanceRef("node0", f"openstack://RegionTwo/{server}")])


def test_one_node_alone_is_read_by_itself(openstack: Site) -> None:
    server = openstack.server("node0")
    instances = openstack.cloud().instances

    calls = openstack.calls(lambda: instances.describe([InstanceRef("node0", f"openstack:///{server}")]))

    assert (calls.get(READ), calls.get(LIST)) == (1, None)


def test_addresses_are_those_of_both_families_and_floating_ones_are_external(openstack: Site) -> None:
    server, (port,) = openstack.project.server("node0", openstack.nodes, floating="203.0.113.9")
    v4, v6 = sorted((ip["ip_address"] for ip in port["fixed_ips"]), key=lambda address: ":" in address)

    (found,) = openstack.cloud().instances.describe([InstanceRef("node0", server)]).values()
    (without,) = openstack.cloud(networking=Networking(without_ipv6=True)).instances.list()

    assert found is not None
    assert {*found.addresses} == {
        NodeAddress("InternalIP", v4),
        NodeAddress("InternalIP", v6),
        NodeAddress("ExternalIP", "203.0.113.9"),
    }
    assert NodeAddress("InternalIP", v6) not in without.addresses
