"""Injected faults: which call is affected by which, through the API and by the rules alone."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from local.mycloud.faults import Faults
from local.mycloud.models.staging import Fault
from tests.local.mycloud.api_calls import get, network, post, refused


def faults(*bodies: dict[str, Any]) -> Faults:
    made = Faults()
    for body in bodies:
        made.add(Fault.model_validate({"operation": "*", "kind": "error", **body}))
    return made


def fails(made: Faults, operation: str = "GET /v1/machines") -> bool:
    return made.meet(operation).error is not None


# --------------------------------------------------------------------------------------------------- through the API


def test_a_throttling_fault_returns_retry_after_count_times(api: TestClient) -> None:
    post(api, "admin/faults", {"operation": "POST /v1/net*", "kind": "throttle", "count": 2, "retry_after": 0.5})

    for _ in range(2):
        answer = api.post("/v1/networks", json={"name": "n"})
        refused(answer, 429, "Throttled")
        assert answer.headers["Retry-After"] == "0.5"

    assert get(api, "networks")["items"] == []
    network(api)
    assert get(api, "admin/faults")["items"] == []


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ({}, 503, "Unavailable"),
        ({"status": 500}, 500, "Internal"),
        ({"status": 403}, 403, "PermissionDenied"),
        ({"status": 403, "code": "QuotaExceeded"}, 403, "QuotaExceeded"),
    ],
)
def test_an_error_fault_returns_its_error_and_the_operation_is_not_done(
    api: TestClient, fault: dict[str, Any], status: int, code: str
) -> None:
    post(api, "admin/faults", {"operation": "POST /v1/networks", "kind": "error", **fault})

    refused(api.post("/v1/networks", json={"name": "n"}), status, code)

    assert get(api, "networks")["items"] == []


def test_latency_delays_an_operation_that_is_then_done(api: TestClient) -> None:
    post(api, "admin/faults", {"operation": "POST /v1/networks", "kind": "latency", "seconds": 0.2})
    began = time.monotonic()

    network(api)

    assert time.monotonic() - began >= 0.2


def test_faults_can_be_removed(api: TestClient) -> None:
    post(api, "admin/faults", {"operation": "*", "kind": "throttle", "count": None})
    refused(api.get("/v1/networks"), 429, "Throttled")

    assert api.delete("/v1/admin/faults").status_code == 204

    assert get(api, "networks")["items"] == []


def test_calls_are_counted_by_route_template_until_a_reset(api: TestClient) -> None:
    made = network(api)["id"]
    get(api, f"networks/{made}")
    get(api, f"networks/{made}")

    counted = get(api, "admin/calls")["calls"]
    assert api.delete("/v1/admin/calls").status_code == 204

    assert counted == {"POST /v1/networks": 1, "GET /v1/networks/{id}": 2, "GET /v1/admin/calls": 1}
    assert get(api, "admin/calls")["calls"] == {"GET /v1/admin/calls": 1}


def test_the_data_planes_calls_are_counted_under_their_own_name(api: TestClient) -> None:
    assert api.get("/internal/balancer/config").status_code == 200

    assert get(api, "admin/calls")["calls"] == {"GET /internal/balancer/config": 1, "GET /v1/admin/calls": 1}


# ---------------------------------------------------------------------------------------------------- by their rules


def test_the_first_matching_calls_succeed_before_a_fault_with_after() -> None:
    made = faults({"operation": "POST *", "after": 2})

    met = [fails(made, call) for call in ("POST /v1/a", "GET /v1/a", "POST /v1/b", "POST /v1/a", "POST /v1/a")]

    assert met == [False, False, False, True, False]


def test_a_fault_without_a_count_lasts() -> None:
    made = faults({"count": None})

    assert all(fails(made) for _ in range(100))


def test_a_fault_with_a_probability_is_counted_only_when_it_applies() -> None:
    made = faults({"probability": 0.3, "count": 20})

    met = [fails(made) for _ in range(2000)]

    assert met.count(True) == 20
    assert False in met[: met.index(True) + 20]
    assert made.all() == []


def test_a_fault_with_probability_zero_never_applies() -> None:
    made = faults({"probability": 0, "count": None})

    assert not any(fails(made) for _ in range(100))


def test_latencies_add_up_before_the_fault_that_ends_the_call() -> None:
    made = faults({"kind": "latency", "seconds": 1}, {"kind": "latency", "seconds": 0.5}, {}, {"status": 500})

    met = made.meet("GET /v1/machines")

    assert met.delay == 1.5
    assert met.error is not None
    assert met.error.status == 503


@pytest.mark.parametrize(
    ("glob", "operation", "met"),
    [
        ("*", "GET /v1/machines", True),
        ("*", "GET /internal/balancer/config", False),
        ("GET *", "GET /internal/balancer/config", False),
        ("* /internal/*", "GET /internal/balancer/config", True),
        ("*", "POST /v1/admin/faults", False),
        ("* /v1/admin/*", "POST /v1/admin/faults", False),
    ],
)
def test_a_faults_glob_matches_the_users_api_and_the_data_planes_only_by_name(
    glob: str, operation: str, met: bool
) -> None:
    assert fails(faults({"operation": glob}), operation) is met
