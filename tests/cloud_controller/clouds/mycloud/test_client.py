"""The client against the real API: pages, typed errors, and which calls are made again."""

from __future__ import annotations

import traceback
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.mycloud.client import Client, operation_of
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

SECRET = "a-secret-token"


def load_balancer(site: MyCloudSite, name: str = "lb", token: str | None = None) -> dict[str, object]:
    body = {"name": name, "network_id": site.network["id"]}
    return body | ({"client_token": token} if token else {})


def test_more_than_a_hundred_ids_are_asked_for_in_several_calls(site: MyCloudSite) -> None:
    made = site.client.create("load_balancers", load_balancer(site))
    unknown = [f"lb-{number:012x}" for number in range(150)]

    found = site.client.list("load_balancers", ids=[*unknown, made["id"], made["id"]])

    assert [lb["id"] for lb in found] == [made["id"]]
    assert site.calls("GET /v1/load_balancers") == 2


def test_an_empty_set_of_ids_costs_no_call(site: MyCloudSite) -> None:
    assert site.client.list("machines", ids=[]) == []
    assert site.calls("GET /v1/machines") == 0


def test_tags_must_all_match(site: MyCloudSite) -> None:
    site.machine("both", tags={"a": "1", "b": "2"})
    site.machine("one", tags={"a": "1"})

    assert [m["name"] for m in site.client.list("machines", tags={"a": "1", "b": "2"})] == ["both"]


def test_errors_are_typed_and_name_field_and_what_is_allowed(site: MyCloudSite) -> None:
    with pytest.raises(NotFound, match="lb-0"):
        site.client.get("load_balancers", "lb-000000000000")
    with pytest.raises(InvalidConfiguration) as refused:
        site.client.create("load_balancers", {**load_balancer(site), "scheme": "private"})
    assert (refused.value.field, refused.value.allowed) == ("scheme", "'internal' or 'internet-facing'")
    assert str(refused.value).count("scheme") == 1
    site.client.create("load_balancers", load_balancer(site, token="t"))
    with pytest.raises(Conflict, match="other parameters"):
        site.client.create("load_balancers", load_balancer(site, "other", token="t"))


@pytest.mark.parametrize("page", [b"<html>404</html>", b'{"message": "no route"}', b""])
def test_not_found_is_only_what_the_api_says_itself(page: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client("http://proxy.example", SECRET)
    answer = SimpleNamespace(status=404, data=page, headers={})
    monkeypatch.setattr(client._http, "send", lambda *_, **__: answer)

    for call in (client.get, client.delete):
        with pytest.raises(CloudError, match="unknown error format") as error:
            call("machines", "i-1")
        assert type(error.value) is CloudError


def test_a_wrong_token_is_one_clear_error_without_the_token(site: MyCloudSite) -> None:
    with pytest.raises(AccessDenied, match="token") as refused:
        Client(site.endpoint, SECRET).list("machines")

    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_token_that_is_still_the_refused_one_is_an_error_after_one_call(site: MyCloudSite) -> None:
    asked: list[str] = []
    client = Client(site.endpoint, SECRET, refresh_token=lambda: asked.append("again") or SECRET)  # type: ignore[func-returns-value]

    with pytest.raises(AccessDenied, match="token"):
        client.list("machines")

    assert asked == ["again"]


@pytest.mark.parametrize(
    ("path", "operation"),
    [
        ("machines?limit=100", "GET machines"),
        ("machines/i-0a", "GET machines/ID"),
        ("volumes/vol-0a:attach", "GET volumes/ID:attach"),
        ("load_balancers/lb-1/listeners/TCP/80", "GET load_balancers/ID/listeners/ID/ID"),
        (
            "load_balancers/lb-1/backend_sets/web/backends:batch_register",
            "GET load_balancers/ID/backend_sets/ID/backends:batch_register",
        ),
    ],
)
def test_an_operations_name_holds_no_id(path: str, operation: str) -> None:
    assert operation_of("GET", path) == operation


def test_the_token_is_in_no_text_about_the_client() -> None:
    assert SECRET not in repr(Client("http://127.0.0.1:1", SECRET))


def test_an_unreachable_endpoint_is_one_clear_error() -> None:
    pauses: list[float] = []
    client = Client("http://127.80.0.99:1", SECRET, sleep=pauses.append)

    with pytest.raises(
        Unavailable, match=r"could not connect to mycloud at .*127\.80\.0\.99:1 \(Connection refused\)"
    ) as failed:
        client.create("networks", {"name": "n"})

    assert len(pauses) == 5  # Nothing was ever sent, so even a plain POST is tried again.
    assert failed.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(failed.value))


@pytest.mark.parametrize("endpoint", ["127.0.0.1:80", "ftp://h", "http://", "http://h:99999", "http://[::1"])
def test_an_endpoint_that_is_no_url_is_refused_before_any_call(endpoint: str) -> None:
    with pytest.raises(InvalidConfiguration, match="endpoint"):
        Client(endpoint, SECRET)


@pytest.mark.parametrize("token", [f"{SECRET}\nmore", f"{SECRET}…", f"a {SECRET}"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidConfiguration, match="token: not valid in an HTTP header") as refused:
        Client("http://127.0.0.1:1", token)

    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_throttled_call_waits_as_long_as_the_cloud_says(site: MyCloudSite) -> None:
    pauses: list[float] = []
    client = Client(site.endpoint, site.token, sleep=pauses.append)
    site.fault("POST /v1/load_balancers", "throttle", count=2, retry_after=3)

    client.create("load_balancers", load_balancer(site))

    assert [3 <= pause <= 3.3 for pause in pauses] == [True, True]
    assert len(site.load_balancers()) == 1


def test_a_cloud_that_names_no_time_to_wait_is_not_called_without_a_pause(site: MyCloudSite) -> None:
    pauses: list[float] = []
    client = Client(site.endpoint, site.token, sleep=pauses.append)
    site.fault("GET /v1/machines", "throttle", count=None, retry_after=0)

    with pytest.raises(Throttled):
        client.list("machines")

    assert len(pauses) > 1
    assert min(pauses) >= 0.2


def test_a_throttled_call_is_given_back_when_the_wait_would_be_too_long(site: MyCloudSite) -> None:
    client = Client(site.endpoint, site.token, deadline=2)
    site.fault("GET /v1/machines", "throttle", retry_after=60)

    with pytest.raises(Throttled) as refused:
        client.list("machines")

    assert refused.value.retry_after == 60


def test_a_lost_answer_to_a_create_without_a_token_is_an_error_and_not_repeated(site: MyCloudSite) -> None:
    site.fault("POST /v1/load_balancers", "drop_answer")

    with pytest.raises(Unavailable, match="connection lost during POST /v1/load_balancers"):
        site.client.create("load_balancers", load_balancer(site))

    assert len(site.load_balancers()) == 1


def test_a_slow_cloud_does_also_what_its_caller_no_longer_waits_for(site: MyCloudSite) -> None:
    site.fault("POST /v1/load_balancers", "latency", seconds=0.4)
    impatient = Client(site.endpoint, site.token, timeout=0.1)

    with pytest.raises(Unavailable, match="did not respond to POST /v1/load_balancers in time"):
        impatient.create("load_balancers", load_balancer(site))

    eventually(site.load_balancers, "the load balancer is made")
    assert len(site.load_balancers()) == 1


def test_waiting_ends_with_the_state_the_reason_of_a_failure_or_the_time(site: MyCloudSite) -> None:
    made = site.client.create("load_balancers", load_balancer(site))["id"]
    with pytest.raises(Unavailable, match="still 'creating'"):
        site.client.wait_for_state("load_balancers", made, {"available"}, deadline=0)
    site.settle()
    assert site.client.wait_for_state("load_balancers", made, {"available"}, deadline=5)["id"] == made
    site.set_load_balancer_state(made, "failed", "the port is taken")
    with pytest.raises(CloudError, match="the port is taken"):
        site.client.wait_for_state("load_balancers", made, {"available"}, deadline=5)
    site.client.delete("load_balancers", made)
    site.settle()
    site.client.wait_until_gone("load_balancers", made, deadline=5)
