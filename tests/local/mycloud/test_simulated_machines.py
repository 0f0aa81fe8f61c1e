"""Machines without processes: made by the thousand, for benchmarks and tests."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.local.mycloud.api_calls import Json, get, machine_body, place, post, refused

pytestmark = pytest.mark.integration


def simulate(api: TestClient, where: Json, count: int, **more: Any) -> Json:
    body = {"cluster_id": where["cluster"]["id"], "subnet_ids": [where["subnet"]["id"]], "count": count, **more}
    return post(api, "admin/machines", body)


def machines(api: TestClient) -> list[Json]:
    return list(get(api, "machines")["items"])


def test_simulated_machines_run_at_once_and_are_marked_as_simulated(api: TestClient) -> None:
    where = place(api)

    assert simulate(api, where, 3, tags={"a": "b"}) == {"machines": 3}

    made = machines(api)
    assert [each["name"] for each in made] == ["node-00000", "node-00001", "node-00002"]
    assert {(each["state"], each["simulated"], each["zone"], each["role"]) for each in made} == {
        ("running", True, "zone-b", "worker")
    }
    assert [each["private_ips"] for each in made] == [["10.33.0.10"], ["10.33.0.11"], ["10.33.0.12"]]
    assert all(each["tags"] == {"a": "b"} for each in made)


def test_a_machine_is_not_simulated_unless_it_was_made_so(api: TestClient) -> None:
    assert post(api, "machines", machine_body(place(api)))["simulated"] is False


def test_simulated_machines_are_spread_over_the_subnets(api: TestClient) -> None:
    where = place(api)
    other = post(api, "subnets", {"name": "t", "network_id": where["network_id"], "zone": "zone-c"})

    simulate(api, where, 4, subnet_ids=[where["subnet"]["id"], other["id"]])

    assert [each["zone"] for each in machines(api)] == ["zone-b", "zone-c", "zone-b", "zone-c"]


def test_more_simulated_machines_use_free_names(api: TestClient) -> None:
    where = place(api)
    post(api, "machines", machine_body(where, "w-00001"))
    simulate(api, where, 1, name_prefix="w-")

    simulate(api, where, 2, name_prefix="w-")

    assert sorted(each["name"] for each in machines(api)) == ["w-00000", "w-00001", "w-00002", "w-00003"]


def test_all_simulated_machines_can_be_ended_together_and_real_ones_stay(api: TestClient) -> None:
    where = place(api)
    real = post(api, "machines", machine_body(where))["id"]
    simulate(api, where, 2)

    assert api.delete("/v1/admin/machines").status_code == 204

    assert {each["id"]: each["state"] for each in machines(api) if each["state"] != "terminated"} == {real: "creating"}


def test_simulated_machines_in_a_subnet_of_another_network_are_refused(api: TestClient) -> None:
    where = place(api)
    elsewhere = post(api, "networks", {"name": "other"})
    subnet = post(api, "subnets", {"name": "t", "network_id": elsewhere["id"], "zone": "zone-a"})
    body = {"cluster_id": where["cluster"]["id"], "subnet_ids": [where["subnet"]["id"], subnet["id"]], "count": 2}

    refused(api.post("/v1/admin/machines", json=body), 400, "InvalidParameter")

    assert machines(api) == []


@pytest.mark.parametrize(
    ("operations", "state"),
    [(["stop"], "stopped"), (["reboot"], "running"), (["start"], "running"), (["stop", "start"], "running")],
)
def test_a_request_to_a_simulated_machine_takes_effect_at_once(
    api: TestClient, operations: list[str], state: str
) -> None:
    simulate(api, place(api), 1)
    (machine,) = machines(api)

    answers = [api.post(f"/v1/machines/{machine['id']}/{operation}").json() for operation in operations]

    assert answers[-1]["state"] == state


def test_a_deleted_simulated_machine_is_terminated_at_once(api: TestClient) -> None:
    simulate(api, place(api), 1)
    (machine,) = machines(api)

    deleted = api.delete(f"/v1/machines/{machine['id']}").json()

    assert deleted["state"] == "terminated"
    assert deleted["terminated_at"] is not None


def test_no_volume_can_be_attached_to_a_simulated_machine(api: TestClient) -> None:
    simulate(api, place(api), 1)
    (machine,) = machines(api)
    volume = post(api, "volumes", {"name": "v", "zone": "zone-b", "size_gib": 1})

    answer = api.post(f"/v1/volumes/{volume['id']}:attach", json={"machine_id": machine["id"]})

    refused(answer, 409, "Conflict")
