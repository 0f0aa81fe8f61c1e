"""Pod routes on a real router: calls, address pairs, and what must not be lost."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import Route
from cloud_controller.clouds.openstack.routes import RouterRoutes
from tests.cloud_controller.clouds.openstack.site import WITHOUT_EXTENSION, Site

pytestmark = pytest.mark.integration

ROUTER, PORTS = "GET network /v2.0/routers/ID", "GET network /v2.0/ports"
ADD, REMOVE = "PUT network /v2.0/routers/ID/add_extraroutes", "PUT network /v2.0/routers/ID/remove_extraroutes"
PORT = "PUT network /v2.0/ports/ID"


def routes_of(openstack: Site) -> RouterRoutes:
    """As a new process sees them, with its token."""
    cloud = openstack.cloud(router_id=openstack.router)
    assert cloud.routes is not None
    cloud.instances.list()
    return cloud.routes


def pairs(openstack: Site, server: str) -> list[str]:
    """The allowed address pairs of a server's port."""
    (port,) = openstack.project.api.get("network", f"ports?device_id={server}")["ports"]
    return sorted(each["ip_address"] for each in port["allowed_address_pairs"])


def twin(openstack: Site, address: str, *pairs: str) -> str:
    """The ID of a server that has this address of the nodes' in an isolated network, where its port has these pairs."""
    network, (subnet,) = openstack.project.network("isolated", "10.1.0.0/16")
    server, (port,) = openstack.project.server("twin", (network, [subnet]))
    fixed_ips = [{"subnet_id": subnet["id"], "ip_address": address}]
    body = {"fixed_ips": fixed_ips, "allowed_address_pairs": [{"ip_address": each} for each in pairs]}
    openstack.project.api.put("network", f"ports/{port['id']}", {"port": body})
    return server


def hops(openstack: Site) -> dict[str, str]:
    """The routes of the router."""
    found = openstack.project.api.get("network", f"routers/{openstack.router}")["router"]["routes"]
    return {each["destination"]: each["nexthop"] for each in found}


def test_many_routes_are_one_write_and_one_for_each_port(openstack: Site) -> None:
    servers = [openstack.server(f"node{number}") for number in range(3)]
    wanted = [Route(f"10.244.{number}.0/24", server) for number, server in enumerate(servers)]
    routes = routes_of(openstack)

    calls = openstack.calls(lambda: routes.create(wanted))

    assert calls == {ROUTER: 1, PORTS: 1, PORT: 3, ADD: 1}
    assert {*hops(openstack)} == {route.destination_cidr for route in wanted}
    assert [pairs(openstack, server) for server in servers] == [[route.destination_cidr] for route in wanted]


def test_an_idle_look_at_the_routes_is_one_call(openstack: Site) -> None:
    server = openstack.server("node0")
    # Its listing has the server; how long ago that was depends on the machine.
    routes = routes_of(openstack)
    routes.create([Route("10.244.0.0/24", server)])
    routes.list()

    assert openstack.calls(routes.list) == {ROUTER: 1}


def test_a_route_is_removed_with_its_pair_and_others_pairs_stay(openstack: Site) -> None:
    server = openstack.server("node0")
    (port,) = openstack.project.api.get("network", f"ports?device_id={server}")["ports"]
    openstack.project.api.put(
        "network", f"ports/{port['id']}", {"port": {"allowed_address_pairs": [{"ip_address": "10.9.9.9"}]}}
    )
    routes = routes_of(openstack)
    routes.create([Route("10.244.0.0/24", server)])
    assert pairs(openstack, server) == ["10.244.0.0/24", "10.9.9.9"]

    assert routes.delete([Route("10.244.0.0/24", server)]) == []

    assert hops(openstack) == {}
    assert pairs(openstack, server) == ["10.9.9.9"]


def test_a_pair_that_somebody_writes_meanwhile_stays(openstack: Site) -> None:
    server = openstack.server("node0")
    routes = routes_of(openstack)
    (port,) = openstack.project.api.get("network", f"ports?device_id={server}")["ports"]
    body = {"port": {"allowed_address_pairs": [{"ip_address": "10.9.9.9"}]}}
    before = openstack.proxy._pool.request

    def meddled(method: str, url: str, **more: object) -> object:
        if method == "PUT" and "/ports/" in url and pairs(openstack, server) == []:
            openstack.project.api.put("network", f"ports/{port['id']}", body)
        return before(method, url, **more)  # type: ignore[arg-type]

    openstack.proxy._pool.request = meddled  # type: ignore[method-assign, assignment]
    assert routes.create([Route("10.244.0.0/24", server)]) == []

    assert pairs(openstack, server) == ["10.244.0.0/24", "10.9.9.9"]


def test_the_route_of_a_server_that_is_gone_is_a_black_hole(openstack: Site) -> None:
    server = openstack.server("node0")
    routes_of(openstack).create([Route("10.244.0.0/24", server)])
    openstack.project.end_server(server)

    (found,) = routes_of(openstack).list()

    assert found == Route("10.244.0.0/24", "", blackhole=True, owned=None)
    assert routes_of(openstack).delete([found]) == []
    assert hops(openstack) == {}


def test_a_server_that_shows_no_addresses_keeps_its_route(openstack: Site) -> None:
    network, subnets = openstack.nodes
    server, (port,) = openstack.project.server("node0", (network, subnets))
    routes = routes_of(openstack)
    routes.create([Route("10.244.0.0/24", server)])
    openstack.peer.admin.put("network", f"ports/{port['id']}", {"port": {"device_id": "", "device_owner": ""}})

    (known,) = routes.list()
    (found,) = routes_of(openstack).list()

    assert known == Route("10.244.0.0/24", server, owned=None)
    assert found == Route("10.244.0.0/24", "", owned=None)
    assert not found.blackhole


def test_an_ipv6_range_leads_to_an_ipv6_address(openstack: Site) -> None:
    server = openstack.server("node0")
    routes = routes_of(openstack)

    assert routes.create([Route("fd00:244::/64", server), Route("10.244.0.0/24", server)]) == []

    assert {":" in hop for destination, hop in hops(openstack).items() if ":" in destination} == {True}
    assert {each.destination_cidr: each.target_instance for each in routes.list()} == {
        "fd00:244::/64": server,
        "10.244.0.0/24": server,
    }


def test_without_the_extension_the_whole_list_is_written_and_checked(openstack: Site) -> None:
    servers = [openstack.server(f"node{number}") for number in range(2)]
    routes = routes_of(openstack)
    openstack.proxy.fault = lambda operation: WITHOUT_EXTENSION if "extraroutes" in operation else None

    assert routes.create([Route("10.244.0.0/24", servers[0])]) == []
    assert routes.create([Route("10.244.1.0/24", servers[1])]) == []
    assert {*hops(openstack)} == {"10.244.0.0/24", "10.244.1.0/24"}

    assert routes.delete([Route("10.244.0.0/24", servers[0])]) == []
    assert {*hops(openstack)} == {"10.244.1.0/24"}
    assert openstack.proxy.counts[ADD] == 1


def test_a_server_without_an_address_behind_the_router_fails_alone(openstack: Site) -> None:
    elsewhere, _ = openstack.project.server("elsewhere", openstack.project.network("other", "10.7.0.0/24"))
    wanted = [Route("10.244.0.0/24", openstack.server("node0")), Route("10.244.1.0/24", elsewhere)]

    (failure,) = routes_of(openstack).create(wanted)

    assert failure.route == wanted[1]
    assert f"server {elsewhere} has no address in a subnet of router" in str(failure.error)
    assert {*hops(openstack)} == {"10.244.0.0/24"}


def test_a_route_to_an_address_that_nova_shows_no_more_follows_its_port(
    openstack: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a port it is a black hole. (The services here show the addresses of a deleted port.)"""
    server = openstack.server("node0")
    routes = routes_of(openstack)
    assert routes.create([Route("10.244.0.0/24", server)]) == []
    assert [each.target_instance for each in routes.list()] == [server]
    monkeypatch.setattr(routes._instances, "shows", lambda _server, _address: False)
    (port,) = openstack.project.api.get("network", f"ports?device_id={server}")["ports"]
    assert [each.target_instance for each in routes.list()] == [server]

    openstack.peer.admin.delete("network", f"ports/{port['id']}")

    assert [each.blackhole for each in routes.list()] == [True]


def test_routes_lead_to_servers_behind_a_redundant_router(openstack: Site) -> None:
    """Neutron gives the interfaces of such a router an owner of their own."""
    body = {"router": {"name": "redundant", "ha": True, "project_id": openstack.project.id}}
    openstack.router = openstack.peer.admin.post("network", "routers", body)["router"]["id"]
    interface = {"subnet_id": openstack.nodes[1][0]["id"]}
    openstack.project.api.put("network", f"routers/{openstack.router}/add_router_interface", interface)
    server = openstack.server("node0")

    assert routes_of(openstack).create([Route("10.244.0.0/24", server)]) == []

    assert {*hops(openstack)} == {"10.244.0.0/24"}


def test_a_route_and_its_pair_are_those_of_the_port_behind_the_router(openstack: Site) -> None:
    server = openstack.server("node0")
    route = Route("10.244.0.0/24", server, owned=None)
    routes_of(openstack).create([route])
    other = twin(openstack, hops(openstack)[route.destination_cidr], route.destination_cidr)
    routes = routes_of(openstack)

    assert routes.list() == [route]
    assert routes.delete([route]) == []

    assert (pairs(openstack, server), pairs(openstack, other)) == ([], [route.destination_cidr])


def test_a_next_hop_whose_address_only_a_port_elsewhere_has_is_a_black_hole(openstack: Site) -> None:
    server = openstack.server("node0")
    routes_of(openstack).create([Route("10.244.0.0/24", server)])
    twin(openstack, hops(openstack)["10.244.0.0/24"])
    openstack.project.end_server(server)

    (found,) = routes_of(openstack).list()

    assert found == Route("10.244.0.0/24", "", blackhole=True, owned=None)


def test_a_route_by_the_routers_gateway_leads_to_its_server(openstack: Site) -> None:
    """The gateway's port is no port of the project: only the router shows its subnet."""
    network, (subnet,) = openstack.project.network("public", "203.0.113.0/24", external=True)
    openstack.router = openstack.project.router(external=network["id"])
    server = openstack.server("node0")
    port = {"network_id": network["id"], "project_id": openstack.project.id, "device_id": server}
    body = {"port": port | {"device_owner": "compute:nova", "fixed_ips": [{"subnet_id": subnet["id"]}]}}
    (ip,) = openstack.peer.admin.post("network", "ports", body)["port"]["fixed_ips"]
    entry = {"destination": "10.244.0.0/24", "nexthop": ip["ip_address"]}
    path = f"routers/{openstack.router}/add_extraroutes"
    openstack.project.api.put("network", path, {"router": {"routes": [entry]}})

    assert routes_of(openstack).list() == [Route("10.244.0.0/24", server, owned=None)]
