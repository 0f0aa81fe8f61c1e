"""mycloud's API for its users: the contract of `docs/mycloud-api.md`, in process."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from local.mycloud.api import create_app
from local.mycloud.context import Context
from local.mycloud.errors import QuotaExceeded
from local.mycloud.models.common import State
from local.mycloud.models.compute import Cluster
from local.mycloud.networking import free_host
from tests.local.mycloud.api_calls import (
    TOKEN,
    Json,
    get,
    machine_body,
    network,
    place,
    post,
    refused,
    set_state,
)

pytestmark = pytest.mark.integration

# ------------------------------------------------------------------------------------------------------------ access


def test_healthz_and_the_openapi_document_need_no_token(context: Context) -> None:
    anybody = TestClient(create_app(context))

    assert anybody.get("/healthz").status_code == 200
    document = anybody.get("/openapi.json").json()
    assert "/v1/machines/{id}/reboot" in document["paths"]
    assert document["security"] == [{"token": []}]
    assert set(document["paths"]["/v1/networks"]["post"]["responses"]) == {"201", "default"}


@pytest.mark.parametrize("header", [None, "Bearer wrong", TOKEN, f"Basic {TOKEN}"])
def test_nothing_else_is_answered_without_the_token(context: Context, header: str | None) -> None:
    api = TestClient(create_app(context), headers={} if header is None else {"Authorization": header})

    refused(api.get("/v1/networks"), 401, "Unauthorized")


# ------------------------------------------------------------------------------------------------- objects and lists


def test_a_network_gets_ranges_of_the_sites_block_and_a_route_table(api: TestClient) -> None:
    made = network(api)

    assert made["state"] == "creating"
    assert (made["cidr"], made["pod_cidr"]) == ("10.33.0.0/18", "10.36.0.0/16")
    assert (made["service_cidr"], made["load_balancer_cidr"]) == ("10.34.0.0/18", "127.35.0.0/18")
    assert get(api, f"route_tables/{made['route_table_id']}")["network_id"] == made["id"]
    assert "index" not in made


def test_a_fifth_network_exceeds_the_quota(api: TestClient) -> None:
    for number in range(4):
        network(api, f"net-{number}")

    refused(api.post("/v1/networks", json={"name": "net-4"}), 403, "QuotaExceeded")


def test_subnets_share_no_addresses(api: TestClient) -> None:
    net = network(api)

    cidrs = [
        post(api, "subnets", {"name": f"s{n}", "network_id": net["id"], "zone": "zone-a"})["cidr"] for n in range(4)
    ]

    assert cidrs == ["10.33.0.0/20", "10.33.16.0/20", "10.33.32.0/20", "10.33.48.0/20"]


def test_lists_filter_by_ids_name_tags_state_and_foreign_keys(api: TestClient) -> None:
    where = place(api)
    one = post(api, "machines", machine_body(where, "one", tags={"team": "a", "tier": "web"}))
    two = post(api, "machines", machine_body(where, "two", tags={"team": "a"}))

    def found(**query: Any) -> list[str]:
        return [item["name"] for item in get(api, "machines", **query)["items"]]

    assert found(ids=f"{two['id']},i-000000000000") == ["two"]
    assert found(name="one") == ["one"]
    assert found(tag="team=a") == ["one", "two"]
    assert found(tag=["team=a", "tier=web"]) == ["one"]
    assert found(state="running") == []
    assert found(zone="zone-b", cluster_id=where["cluster"]["id"], ids=one["id"]) == ["one"]
    assert found(network_id="net-000000000000") == []
    assert found(ids="") == []
    assert found(names="two,unknown") == ["two"]


@pytest.mark.parametrize("field", ["ids", "names"])
def test_more_than_a_hundred_filter_values_are_refused(api: TestClient, field: str) -> None:
    many = ",".join(f"i-{number:012x}" for number in range(101))

    assert refused(api.get("/v1/machines", params={field: many}), 400, "InvalidParameter")["field"] == field


@pytest.mark.parametrize(
    ("query", "field"), [({"limit": 0}, "limit"), ({"limit": 101}, "limit"), ({"cursor": "x"}, "cursor")]
)
def test_the_error_for_an_invalid_query_names_the_parameter(api: TestClient, query: Json, field: str) -> None:
    assert refused(api.get("/v1/machines", params=query), 400, "InvalidParameter")["field"] == field


def test_patch_changes_name_and_tags_and_nothing_else(api: TestClient) -> None:
    made = network(api)

    changed = api.patch(f"/v1/networks/{made['id']}", json={"tags": {"a": "b"}}).json()

    assert changed == {**made, "tags": {"a": "b"}}
    assert get(api, "networks", tag="a=b")["items"] == [changed]


def test_an_unknown_field_and_an_unknown_value_are_named_with_what_is_allowed(api: TestClient) -> None:
    where = place(api)

    unknown = refused(api.post("/v1/networks", json={"name": "n", "colour": "red"}), 400, "InvalidParameter")
    bad = refused(api.post("/v1/machines", json=machine_body(where, type="m9.huge")), 400, "InvalidParameter")

    assert unknown["field"] == "colour"
    assert (bad["field"], bad["allowed"]) == ("type", "'m1.small', 'm1.medium' or 'm1.large'")


def test_a_missing_object_is_not_found(api: TestClient) -> None:
    refused(api.get("/v1/machines/i-000000000000"), 404, "NotFound")
    refused(api.delete("/v1/load_balancers/lb-000000000000"), 404, "NotFound")
    refused(api.get("/v1/unicorns"), 404, "NotFound")


# ------------------------------------------------------------------------------------------------------- idempotency


def test_the_same_token_with_another_body_is_a_conflict(api: TestClient) -> None:
    post(api, "networks", {"name": "n", "client_token": "t"})

    refused(api.post("/v1/networks", json={"name": "m", "client_token": "t"}), 409, "IdempotencyConflict")


def test_a_client_token_makes_its_machine_again_once_the_first_is_terminated(api: TestClient, context: Context) -> None:
    where = place(api)
    body = machine_body(where, client_token="worker-0 of c")
    first = post(api, "machines", body)
    assert api.delete(f"/v1/machines/{first['id']}").status_code == 202
    refused(api.post("/v1/machines", json=machine_body(where)), 409, "Conflict")
    set_state(context, first["id"], State.TERMINATED)

    second = post(api, "machines", body)

    assert second["id"] != first["id"]
    assert post(api, "machines", body)["id"] == second["id"]


# ---------------------------------------------------------------------------------------------------------- machines


def test_a_machines_name_is_a_dns_label_and_unique_in_its_network(api: TestClient) -> None:
    where = place(api)
    post(api, "machines", machine_body(where, "one"))

    assert refused(api.post("/v1/machines", json=machine_body(where, "one")), 409, "Conflict")["field"] == "name"
    assert refused(api.post("/v1/machines", json=machine_body(where, "One_")), 400, "InvalidParameter")["field"] == (
        "name"
    )


def test_a_machine_can_be_stopped_started_and_rebooted_until_it_is_terminated(
    api: TestClient, context: Context
) -> None:
    made = post(api, "machines", machine_body(place(api)))["id"]
    refused(api.post(f"/v1/machines/{made}/reboot"), 409, "Conflict")

    assert api.post(f"/v1/machines/{made}/stop").json()["state"] == "stopping"
    set_state(context, made, State.STOPPED)
    assert api.post(f"/v1/machines/{made}/start").json()["state"] == "creating"
    set_state(context, made, State.RUNNING)
    assert api.post(f"/v1/machines/{made}/reboot").json()["state"] == "running"
    assert api.delete(f"/v1/machines/{made}").json()["state"] == "stopping"
    refused(api.post(f"/v1/machines/{made}/start"), 409, "Conflict")


def test_kubeconfigs_are_issued_once_the_cluster_is_available(api: TestClient, context: Context) -> None:
    made = place(api)["cluster"]["id"]
    refused(api.get(f"/v1/clusters/{made}/kubeconfig"), 503, "Unavailable")
    with context.store.write() as session:
        session.save(session.get(Cluster, made).model_copy(update={"state": State.AVAILABLE}))

    answer = api.post(f"/v1/clusters/{made}/credentials", json={"ttl_seconds": 600})

    assert answer.json() == {"kubeconfig": f"kubeconfig of {made} for 600 s"}


# ------------------------------------------------------------------------------------------------------ dependencies


def test_an_object_in_use_cannot_be_deleted(api: TestClient, context: Context) -> None:
    where = place(api)
    machine = post(api, "machines", machine_body(where))

    for path in ("subnets/" + where["subnet"]["id"], "clusters/" + where["cluster"]["id"]):
        assert machine["id"] in refused(api.delete(f"/v1/{path}"), 409, "Conflict")["message"]
    message = refused(api.delete(f"/v1/networks/{where['network_id']}"), 409, "Conflict")["message"]
    assert where["subnet"]["id"] in message
    assert machine["id"] in message

    set_state(context, machine["id"], State.TERMINATED)
    assert api.delete(f"/v1/clusters/{where['cluster']['id']}").json()["state"] == "deleting"
    assert api.delete(f"/v1/subnets/{where['subnet']['id']}").json()["state"] == "deleting"


def test_nothing_can_be_created_inside_an_object_being_deleted(api: TestClient) -> None:
    net = network(api)
    api.delete(f"/v1/networks/{net['id']}")

    refused(api.post("/v1/subnets", json={"name": "s", "network_id": net["id"], "zone": "zone-a"}), 409, "Conflict")


# ------------------------------------------------------------------------------------------------------------ routes


def test_a_route_to_a_terminated_machine_is_a_blackhole_that_can_be_deleted(api: TestClient, context: Context) -> None:
    where = place(api)
    table = f"route_tables/{where['table']}/routes"
    made = post(api, "machines", machine_body(where))["id"]
    post(api, f"{table}:batch_create", {"routes": [{"destination_cidr": "10.36.0.0/24", "next_hop_machine_id": made}]})

    set_state(context, made, State.TERMINATED)

    assert get(api, table)["items"][0] == {
        "destination_cidr": "10.36.0.0/24",
        "next_hop_machine_id": made,
        "state": "blackhole",
    }
    deleted = post(api, f"{table}:batch_delete", {"destination_cidrs": ["10.36.0.0/24", "10.36.9.0/24"]})["results"]
    assert [result["error"] and result["error"]["code"] for result in deleted] == [None, "NotFound"]
    assert get(api, table)["items"] == []


@pytest.mark.parametrize("cidr", ["10.36.0.1/24", "nonsense", "10.36.0.0/33"])
def test_an_invalid_destination_is_refused_with_its_position(api: TestClient, cidr: str) -> None:
    where = place(api)

    error = refused(
        api.post(
            f"/v1/route_tables/{where['table']}/routes:batch_create",
            json={"routes": [{"destination_cidr": cidr, "next_hop_machine_id": "i-000000000000"}]},
        ),
        400,
        "InvalidParameter",
    )

    assert error["field"] == "routes.0.destination_cidr"


def test_an_unstorable_text_is_refused(api: TestClient) -> None:
    half = rb'{"name": "n", "tags": {"k": "\ud800"}}'

    answer = api.post("/v1/networks", content=half, headers={"Content-Type": "application/json"})

    assert refused(answer, 400, "InvalidParameter")["field"] == "tags.k"


# --------------------------------------------------------------------------------------------------------- addresses


def test_a_freed_address_is_reused_after_the_others(api: TestClient, context: Context) -> None:
    where = place(api)
    first = post(api, "machines", machine_body(where, "first"))
    set_state(context, first["id"], State.TERMINATED)

    second = post(api, "machines", machine_body(where, "second"))

    assert second["private_ips"] != first["private_ips"]


def test_addresses_cycle_skip_those_in_use_and_run_out_with_an_error() -> None:
    cidr, taken = "10.33.0.0/28", set[str]()
    given, next_host = [], 12
    for _ in range(5):
        address, next_host = free_host(cidr, next_host, taken.__contains__)
        given.append(address)
        taken.add(address)

    assert given == ["10.33.0.12", "10.33.0.13", "10.33.0.14", "10.33.0.10", "10.33.0.11"]
    with pytest.raises(QuotaExceeded, match="no address is free"):
        free_host(cidr, next_host, taken.__contains__)
