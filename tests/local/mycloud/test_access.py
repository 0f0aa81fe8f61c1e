"""Further tokens: their rights and expiry."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from local.mycloud.access import EXPIRED_STAY_SECONDS
from local.mycloud.context import Context
from tests.local.mycloud.api_calls import client, get, network, post, refused


def with_token(api: TestClient, context: Context, operations: list[str] | None = None) -> TestClient:
    """A client whose token may do these operations, for an hour."""
    issued = post(api, "admin/tokens", {"ttl_seconds": 3600, "operations": operations})
    return client(context, issued["token"])


def expired_token(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> str:
    """A token that expired more than an hour ago."""
    past = time.time() - 3700
    monkeypatch.setattr(time, "time", lambda: past)
    token = post(api, "admin/tokens", {"ttl_seconds": 100})["token"]
    monkeypatch.undo()
    return str(token)


def test_a_further_token_may_do_what_users_may(api: TestClient, context: Context) -> None:
    user = with_token(api, context)

    made = network(user)

    assert [each["id"] for each in get(user, "networks")["items"]] == [made["id"]]


def test_a_token_is_returned_once_with_its_expiry_and_never_stored(api: TestClient, tmp_path: Path) -> None:
    issued = post(api, "admin/tokens", {"ttl_seconds": 60})

    files = list(tmp_path.glob("mycloud.db*"))
    assert files
    assert not any(issued["token"].encode() in file.read_bytes() for file in files)
    assert issued["expires_at"].endswith("Z")


def test_an_expired_token_is_reported_as_expired(
    api: TestClient, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = expired_token(api, monkeypatch)

    error = refused(client(context, token).get("/v1/networks"), 401, "Unauthorized")

    assert error["message"] == "the token has expired"


def test_a_token_that_expired_long_ago_is_forgotten_when_the_next_is_made(
    api: TestClient, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = expired_token(api, monkeypatch)
    tomorrow = time.time() + EXPIRED_STAY_SECONDS
    monkeypatch.setattr(time, "time", lambda: tomorrow)

    post(api, "admin/tokens", {"ttl_seconds": 60})

    error = refused(client(context, token).get("/v1/networks"), 401, "Unauthorized")
    assert error["message"] == "the bearer token is missing or wrong"


def test_an_operation_that_a_token_does_not_allow_is_refused_by_name(api: TestClient, context: Context) -> None:
    reader = with_token(api, context, ["GET *"])

    assert get(reader, "networks")["items"] == []
    error = refused(reader.post("/v1/networks", json={"name": "n"}), 403, "PermissionDenied")

    assert "POST /v1/networks" in error["message"]
    assert get(api, "networks")["items"] == []


@pytest.mark.parametrize("path", ["/v1/admin/faults", "/internal/balancer/config"])
def test_only_the_sites_own_token_may_call_admin_and_data_plane_endpoints(
    api: TestClient, context: Context, path: str
) -> None:
    user = with_token(api, context, ["*"])

    refused(user.get(path), 403, "PermissionDenied")

    assert api.get(path).status_code == 200


def test_the_access_check_returns_the_denied_operations(api: TestClient, context: Context) -> None:
    asked = {"operations": ["GET /v1/machines", "DELETE /v1/load_balancers/lb-0", "POST /v1/load_balancers"]}
    limited = with_token(api, context, ["GET *", "DELETE /v1/load_balancers/*"])

    assert post(limited, "access:check", asked)["denied"] == ["POST /v1/load_balancers"]
    assert post(with_token(api, context, []), "access:check", asked)["denied"] == asked["operations"]
    assert post(with_token(api, context), "access:check", asked)["denied"] == []
    assert post(api, "access:check", {"operations": ["POST /v1/admin/faults"]})["denied"] == []


def test_the_access_check_refuses_an_unknown_operation(api: TestClient) -> None:
    answer = api.post("/v1/access:check", json={"operations": ["machines"]})

    assert refused(answer, 400, "InvalidParameter")["field"] == "operations.0"
