"""Lists that lag behind new objects."""

from __future__ import annotations

import time

import pytest
from fastapi.testclient import TestClient

from tests.local.mycloud.api_calls import Json, get, network, post

LAG = 100.0


@pytest.fixture
def lagging(api: TestClient) -> TestClient:
    answer = api.put("/v1/admin/consistency", json={"lag_seconds": LAG})
    assert answer.status_code == 200, answer.text
    return api


@pytest.mark.parametrize("query", [{}, {"name": "n"}, {"tag": "a=b"}, {"any_tag": "a=b"}, {"state": "creating"}])
def test_a_new_object_is_in_no_list_during_the_lag(lagging: TestClient, query: Json) -> None:
    post(lagging, "networks", {"name": "n", "tags": {"a": "b"}})

    assert get(lagging, "networks", **query)["items"] == []


def test_a_new_object_can_be_read_but_not_listed_by_id_during_the_lag(lagging: TestClient) -> None:
    made = network(lagging)

    assert get(lagging, "networks", ids=made["id"])["items"] == []
    assert get(lagging, f"networks/{made['id']}") == made


def test_an_idempotent_creation_finds_a_new_object_during_the_lag(lagging: TestClient) -> None:
    body = {"name": "n", "client_token": "t"}

    assert post(lagging, "networks", body)["id"] == post(lagging, "networks", body)["id"]


def test_lists_show_a_new_object_after_the_lag(lagging: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = network(lagging)
    later = time.time() + LAG + 1
    monkeypatch.setattr(time, "time", lambda: later)

    assert [each["id"] for each in get(lagging, "networks")["items"]] == [made["id"]]


def test_the_lag_is_returned_and_zero_at_first(api: TestClient) -> None:
    assert get(api, "admin/consistency") == {"lag_seconds": 0}
