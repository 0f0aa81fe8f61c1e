"""Lists that lag behind what was made."""

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
def test_what_was_just_made_is_in_no_list(lagging: TestClient, query: Json) -> None:
    post(lagging, "networks", {"name": "n", "tags": {"a": "b"}})

    assert get(lagging, "networks", **query)["items"] == []


def test_not_even_a_list_by_id_shows_it_but_the_object_itself_is_there(lagging: TestClient) -> None:
    made = network(lagging)

    assert get(lagging, "networks", ids=made["id"])["items"] == []
    assert get(lagging, f"networks/{made['id']}") == made


def test_an_idempotent_creation_finds_it(lagging: TestClient) -> None:
    body = {"name": "n", "client_token": "t"}

    assert post(lagging, "networks", body)["id"] == post(lagging, "networks", body)["id"]


def test_lists_show_it_when_the_lag_is_over(lagging: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = network(lagging)
    later = time.time() + LAG + 1
    monkeypatch.setattr(time, "time", lambda: later)

    assert [each["id"] for each in get(lagging, "networks")["items"]] == [made["id"]]


def test_the_lag_is_told_and_nothing_at_first(api: TestClient) -> None:
    assert get(api, "admin/consistency") == {"lag_seconds": 0}
