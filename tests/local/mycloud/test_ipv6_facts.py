"""mycloud's IPv6 ranges, which are only data: nothing of them is ever bound or forwarded."""

from __future__ import annotations

from fastapi.testclient import TestClient

from local.mycloud.context import Context
from local.mycloud.models.networking import NetworkRecord
from tests.local.mycloud.api_calls import get, machine_body, network, place, post


def test_a_network_has_ipv6_ranges_for_machines_and_pods(api: TestClient) -> None:
    first, second = network(api, "a"), network(api, "b")

    assert (first["ipv6_cidr"], first["pod_cidr_ipv6"]) == ("fd00:20::/64", "fd00:20:1::/48")
    assert (second["ipv6_cidr"], second["pod_cidr_ipv6"]) == ("fd00:20:0:1::/64", "fd00:20:2::/48")


def test_a_machine_has_an_ipv6_address_of_its_own_beside_its_private_one(api: TestClient) -> None:
    where = place(api)

    one, two = (post(api, "machines", machine_body(where, name)) for name in ("one", "two"))

    assert (one["private_ips"], one["ipv6_addresses"]) == (["10.33.0.10"], ["fd00:20::a"])
    assert two["ipv6_addresses"] == ["fd00:20::b"]


def test_a_network_from_before_ipv6_has_no_ranges_and_its_machines_no_addresses(
    api: TestClient, context: Context
) -> None:
    where = place(api)
    with context.store.write() as session:
        old = session.get(NetworkRecord, where["network_id"])
        session.save(old.model_copy(update={"ipv6_cidr": None, "pod_cidr_ipv6": None}))

    assert post(api, "machines", machine_body(where))["ipv6_addresses"] == []


def test_a_route_may_have_an_ipv6_destination(api: TestClient) -> None:
    where = place(api)
    made = post(api, "machines", machine_body(where))["id"]
    table = f"route_tables/{where['table']}/routes"
    route = {"destination_cidr": "FD00:0020:1::/64", "next_hop_machine_id": made}

    results = post(api, f"{table}:batch_create", {"routes": [route]})["results"]

    assert results == [{"destination_cidr": "fd00:20:1::/64", "error": None}]
    assert [each["destination_cidr"] for each in get(api, table)["items"]] == ["fd00:20:1::/64"]
    deleted = post(api, f"{table}:batch_delete", {"destination_cidrs": ["fd00:20:1::/64"]})["results"]
    assert deleted[0]["error"] is None
