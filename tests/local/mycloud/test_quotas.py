"""Quotas: their values, durability, and effect at the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from local.mycloud import quotas
from local.mycloud.models.account import UpdateLimits
from local.mycloud.store import Store
from tests.local.mycloud.api_calls import Json, get, network, post, refused


def set_quotas(api: TestClient, **limits: int) -> None:
    answer = api.put("/v1/admin/quotas", json=limits)
    assert answer.status_code == 200, answer.text


def balancer(network_id: str, ports: range = range(8000, 8001), **more: Any) -> Json:
    listeners = [{"protocol": "TCP", "port": port, "backend_set": "web"} for port in ports]
    return {
        "name": "lb",
        "network_id": network_id,
        "listeners": listeners,
        "backend_sets": [{"name": "web", "backends": []}],
        **more,
    }


def test_limits_are_returned_and_unchanged_ones_stay(api: TestClient) -> None:
    before = get(api, "quotas")["quotas"]

    set_quotas(api, volumes=3)

    assert before == {
        "routes_per_table": 48,
        "load_balancers": 1000,
        "listeners_per_load_balancer": 50,
        "volumes": 200,
    }
    assert get(api, "quotas")["quotas"] == {**before, "volumes": 3}


def test_a_limit_out_of_range_is_refused(api: TestClient) -> None:
    answer = api.put("/v1/admin/quotas", json={"volumes": 10**30})

    assert refused(answer, 400, "InvalidParameter")["field"] == "volumes"


def test_limits_survive_a_restart_of_the_api(tmp_path: Path) -> None:
    first = Store(tmp_path / "mycloud.db")
    with first.write() as session:
        quotas.set_limits(session, UpdateLimits(routes_per_table=50))
    first.close()

    second = Store(tmp_path / "mycloud.db")
    with second.read() as session:
        assert quotas.limits(session).routes_per_table == 50
    second.close()


def test_a_load_balancer_beyond_the_limit_is_refused_but_a_repeated_create_finds_its_own(api: TestClient) -> None:
    where = network(api)["id"]
    set_quotas(api, load_balancers=1)
    body = balancer(where, client_token="t")
    first = post(api, "load_balancers", body)

    refused(api.post("/v1/load_balancers", json=balancer(where)), 403, "QuotaExceeded")

    assert post(api, "load_balancers", body)["id"] == first["id"]


def test_listeners_beyond_the_limit_are_refused_whichever_way_they_are_made(api: TestClient) -> None:
    where = network(api)["id"]
    set_quotas(api, listeners_per_load_balancer=2)

    error = refused(api.post("/v1/load_balancers", json=balancer(where, range(8000, 8003))), 403, "QuotaExceeded")
    assert "lb-" not in error["message"], "it does not exist"
    made = post(api, "load_balancers", balancer(where, range(8000, 8002)))["id"]
    one_more = api.put(f"/v1/load_balancers/{made}/listeners/TCP/8002", json={"backend_set": "web"})

    refused(one_more, 403, "QuotaExceeded")


def test_an_object_beyond_a_lowered_limit_can_still_be_changed(api: TestClient) -> None:
    made = post(api, "load_balancers", balancer(network(api)["id"], range(8000, 8003)))["id"]
    set_quotas(api, listeners_per_load_balancer=1, load_balancers=0)

    changed = api.put(f"/v1/load_balancers/{made}/listeners/TCP/8000", json={"backend_set": "web", "max_qps": 5})

    assert changed.status_code == 200, changed.text
