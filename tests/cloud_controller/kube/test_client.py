"""What the client sends, what it sends again, and how it tells what went wrong."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import Any

import pytest

from cloud_controller.fence import WriteRefused, read_only
from cloud_controller.kube import (
    EVENTS,
    NODES,
    SERVICES,
    AlreadyExistsError,
    ApiError,
    ConflictError,
    EventType,
    ForbiddenError,
    GoneError,
    InvalidError,
    Kube,
    NotFoundError,
    NotServedError,
    PatchType,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from cloud_controller.kube.config import Connection
from cloud_controller.kube.rate_limit import RateLimit
from cloud_controller.kube_errors import TlsError
from tests.cloud_controller.kube.scripted_server import Answer, Call, ScriptedServer


def status(code: int, reason: str = "Because", message: str = "no") -> Answer:
    return Answer({"kind": "Status", "code": code, "reason": reason, "message": message}, code)


def last(server: ScriptedServer) -> Call:
    return server.calls[-1]


def test_a_list_is_read_in_pages_and_its_items_know_their_kind(server: ScriptedServer) -> None:
    server.script(
        Answer({"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]}),
        Answer({"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}}]}),
    )

    found = server.kube.list(NODES, label_selector="x=y", field_selector="spec.unschedulable=false")

    assert [(item["kind"], item["apiVersion"], item["metadata"]["name"]) for item in found.items] == [
        ("Node", "v1", "a"),
        ("Node", "v1", "b"),
    ]
    assert found.resource_version == "7"
    common = {"limit": "500", "labelSelector": "x=y", "fieldSelector": "spec.unschedulable=false"}
    assert [call.query for call in server.calls] == [common, common | {"continue": "more"}]


def test_the_token_is_sent_and_never_shown(server: ScriptedServer) -> None:
    server.script(status(403, message="user may not"))

    with pytest.raises(ForbiddenError) as error:
        server.kube.get(NODES, "a")

    assert last(server).headers["Authorization"] == "Bearer secret-token"
    assert "secret-token" not in str(error.value)


@pytest.mark.parametrize("token", ["secret-token\n", "secret\ntoken", "s€cret-token"])
def test_a_token_that_no_header_can_hold_is_an_error_that_does_not_quote_it(server: ScriptedServer, token: str) -> None:
    kube = Kube(Connection("http", "127.0.0.1", server.port, None, lambda: token))

    with pytest.raises(UnauthorizedError, match="one line of printable ASCII") as error:
        kube.get(NODES, "a")

    assert token not in str(error.value)
    assert server.calls == []


def test_a_server_that_ends_the_connection_before_tls_is_unreachable_and_not_untrusted() -> None:
    """As a load balancer does that has no API server any more."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with listening.accept()[0] as connection:
                connection.recv(4096)

        threading.Thread(target=accept, daemon=True).start()
        port = listening.getsockname()[1]
        kube = Kube(Connection("https", "127.0.0.1", port, ssl.create_default_context(), None))

        with pytest.raises(UnreachableError) as error:
            kube.delete(NODES, "a")

    assert not isinstance(error.value, TlsError)


def test_a_request_goes_below_the_servers_path(server: ScriptedServer) -> None:
    Kube(Connection("http", "127.0.0.1", server.port, None, None, path="/clusters/c-1")).get(NODES, "a")

    assert last(server).path == "/clusters/c-1/api/v1/nodes/a"


def test_a_server_side_apply_names_its_field_manager(server: ScriptedServer) -> None:
    server.kube.patch(SERVICES, "a", {"x": 1}, "ns", type=PatchType.APPLY, field_manager="me", force=True, dry_run=True)

    call = last(server)
    assert (call.method, call.path, call.body) == ("PATCH", "/api/v1/namespaces/ns/services/a", {"x": 1})
    assert call.query == {"dryRun": "All", "fieldManager": "me", "force": "true"}
    assert call.headers["Content-Type"] == "application/apply-patch+yaml"


def test_a_server_side_apply_without_field_manager_is_a_programming_error(server: ScriptedServer) -> None:
    with pytest.raises(ValueError, match="requires field_manager"):
        server.kube.patch(NODES, "a", {}, type=PatchType.APPLY)


def test_a_strict_dry_run_says_so_in_its_query(server: ScriptedServer) -> None:
    service = {"metadata": {"name": "web", "namespace": "default"}}
    server.script(Answer({}), Answer({}))

    server.kube.create(SERVICES, service, dry_run=True, strict=True)
    server.kube.replace(SERVICES, service, dry_run=True, strict=True)

    assert [call.query for call in server.calls] == [{"dryRun": "All", "fieldValidation": "Strict"}] * 2


def test_warnings_are_passed_on_to_who_hears_them(server: ScriptedServer) -> None:
    heard: list[str] = []
    server.script(Answer({}, headers={"Warning": '299 - "a \\"b\\", c", 299 - "d"'}), Answer({}))
    kube = server.kube

    kube.hearing(heard.append).get(NODES, "a")
    kube.get(NODES, "a")

    assert heard == ['a "b", c', "d"]


def test_a_status_is_patched_at_its_subresource(server: ScriptedServer) -> None:
    server.kube.patch(NODES, "a", {}, type=PatchType.MERGE, subresource="status")

    assert last(server).path == "/api/v1/nodes/a/status"


def test_a_delete_carries_its_preconditions(server: ScriptedServer) -> None:
    server.kube.delete(NODES, "a", uid="u", propagation="Foreground", grace_seconds=0)

    assert last(server).body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }


def test_a_namespaced_object_without_a_namespace_is_a_programming_error(server: ScriptedServer) -> None:
    with pytest.raises(ValueError, match="services/a: a namespace is required"):
        server.kube.get(SERVICES, "a")
    with pytest.raises(ValueError, match="nodes are cluster-scoped"):
        server.kube.get(NODES, "a", "ns")


@pytest.mark.parametrize(
    "code, reason, kind",
    [
        (400, "BadRequest", InvalidError),
        (401, "Unauthorized", UnauthorizedError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "AlreadyExists", AlreadyExistsError),
        (409, "Conflict", ConflictError),
        (410, "Expired", GoneError),
        (422, "Invalid", InvalidError),
        (500, "InternalError", ApiError),
    ],
)
def test_each_http_error_status_raises_its_own_exception(
    server: ScriptedServer, code: int, reason: str, kind: type[ApiError]
) -> None:
    server.script(status(code, reason, "it is so"))

    with pytest.raises(ApiError) as error:
        server.kube.create(EVENTS, {"metadata": {"namespace": "ns"}})

    assert type(error.value) is kind
    assert (error.value.status, error.value.reason) == (code, reason)
    assert str(error.value) == f"POST /api/v1/namespaces/ns/events: it is so (HTTP {code})"


@pytest.mark.parametrize("body", ["404 page not found", {"message": "no route matched"}, {"kind": "Error"}])
def test_what_a_proxy_or_a_server_without_the_kind_answers_does_not_make_an_object_look_gone(
    server: ScriptedServer, body: Any
) -> None:
    server.script(*[Answer(body, 404)] * 2)

    for call in (lambda: server.kube.get(NODES, "a"), lambda: server.kube.delete(NODES, "a")):
        with pytest.raises(NotServedError, match="not in the API's words"):
            call()


@pytest.mark.parametrize("answer", [{}, {"items": []}, {"metadata": {"resourceVersion": "7"}}, {"kind": "Status"}])
def test_an_answer_that_is_no_list_is_not_an_empty_one(server: ScriptedServer, answer: Any) -> None:
    server.script(Answer(answer))

    with pytest.raises(UnreachableError, match="is not a list"):
        server.kube.list(NODES)


def test_an_error_response_that_is_not_json_is_shown_as_is(server: ScriptedServer) -> None:
    server.script(Answer("a proxy's page", 502))

    with pytest.raises(ApiError, match="a proxy's page"):
        server.kube.get(NODES, "a")


def test_a_read_is_retried_when_the_connection_breaks(server: ScriptedServer) -> None:
    server.script(Answer(drop=True), Answer({"metadata": {"name": "a"}}))

    assert server.kube.get(NODES, "a") == {"metadata": {"name": "a"}}


def test_a_write_is_not_retried_because_it_may_have_succeeded(server: ScriptedServer) -> None:
    server.script(Answer(drop=True))

    with pytest.raises(UnreachableError, match="POST"):
        server.kube.create(NODES, {"metadata": {"name": "a"}})

    assert len(server.calls) == 1


def test_a_throttled_request_is_retried_after_the_servers_retry_after(server: ScriptedServer) -> None:
    server.script(Answer({"reason": "TooManyRequests"}, 429, {"Retry-After": "0"}), Answer({"ok": True}))

    assert server.kube.create(NODES, {"metadata": {"name": "a"}}) == {"ok": True}


def test_a_request_fails_if_the_server_keeps_throttling(server: ScriptedServer) -> None:
    server.answer = lambda _: Answer({"reason": "TooManyRequests"}, 429, {"Retry-After": "0"})

    with pytest.raises(TooManyRequestsError):
        server.kube.get(NODES, "a")

    assert len(server.calls) == 4


def test_a_retry_after_that_is_too_long_is_left_to_the_caller(server: ScriptedServer) -> None:
    server.script(Answer({"reason": "TooManyRequests"}, 429, {"Retry-After": "120"}))

    with pytest.raises(TooManyRequestsError) as error:
        server.kube.get(NODES, "a")

    assert error.value.retry_after == 120


DISCOVERY = Answer(
    {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
        ]
    }
)


def test_discovery_is_cached_per_api_version(server: ScriptedServer) -> None:
    server.script(DISCOVERY)
    kube = server.kube

    found = [kube.resource("apps/v1", "Deployment") for _ in range(2)]

    assert found[0].path("ns", "a") == "/apis/apps/v1/namespaces/ns/deployments/a"
    assert found[0] == found[1]


def test_an_unknown_kind_is_an_error_that_lists_the_served_kinds(server: ScriptedServer) -> None:
    server.script(DISCOVERY)

    with pytest.raises(NotFoundError, match=r"no kind 'Scale' in apps/v1 \(available: Deployment\)"):
        server.kube.resource("apps/v1", "Scale")


def groups(*versions: str) -> Answer:
    return Answer({"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": each} for each in versions]}]})


def test_a_kind_is_unknown_only_if_the_server_lists_its_groups_without_it(server: ScriptedServer) -> None:
    missing = Answer("404 page not found", 404)

    server.script(missing, groups("apps/v1"))
    with pytest.raises(NotFoundError, match=r"no kind 'Box' in example\.org/v1"):
        server.kube.resource("example.org/v1", "Box")
    for then in (missing, groups("example.org/v1")):
        server.script(missing, then)
        with pytest.raises(NotServedError):
            server.kube.resource("example.org/v1", "Box")


def event(type: str, version: str, name: str = "a") -> dict[str, Any]:
    return {"type": type, "object": {"metadata": {"name": name, "resourceVersion": version}}}


def test_a_watch_yields_events_however_the_bytes_are_cut(server: ScriptedServer) -> None:
    lines: list[Any] = [b'{"type":"ADDED","object":{"meta', b'data":{}}}\n{"type":"DELETED",', b'"object":{}}\n']
    server.script(Answer(lines=lines))

    assert [found.type for found in server.kube.watch(NODES, resource_version="5")] == [
        EventType.ADDED,
        EventType.DELETED,
    ]
    assert (
        last(server).query.items() >= {"watch": "true", "resourceVersion": "5", "allowWatchBookmarks": "true"}.items()
    )


def test_a_watch_ends_at_once_when_it_is_closed_from_another_thread(server: ScriptedServer) -> None:
    hang = threading.Event()
    server.script(Answer(lines=[event("ADDED", "6")], hang=hang))
    watch = server.kube.watch(NODES, resource_version="5")
    next(watch)
    seen: list[Any] = []
    reader = threading.Thread(target=lambda: seen.extend(watch))
    reader.start()

    watch.close()
    reader.join(60)

    assert not reader.is_alive()
    assert seen == []
    hang.set()


def test_a_watch_ends_when_its_stop_event_is_set(server: ScriptedServer) -> None:
    hang, stop = threading.Event(), threading.Event()
    server.script(Answer(lines=[], hang=hang))
    stop.set()

    assert list(server.kube.watch(NODES, resource_version="5", stop=stop)) == []
    hang.set()


def test_a_watch_from_a_too_old_resource_version_raises_gone(server: ScriptedServer) -> None:
    server.script(Answer(lines=[{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}]))

    with pytest.raises(GoneError, match="WATCH /api/v1/nodes: too old"):
        list(server.kube.watch(NODES, resource_version="1"))


class Time:
    now = 0.0

    def __init__(self) -> None:
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_rate_limit_lets_a_burst_through_and_then_one_at_a_time() -> None:
    time = Time()
    limit = RateLimit(10, 3, clock=time.clock, sleep=time.sleep)

    for _ in range(5):
        limit.wait()

    assert time.slept == pytest.approx([0.1, 0.1])


def test_an_unused_rate_limit_gathers_no_more_than_its_burst() -> None:
    time = Time()
    limit = RateLimit(10, 1, clock=time.clock, sleep=time.sleep)
    time.now = 1000.0

    assert limit.wait() == 0
    assert limit.wait() == pytest.approx(0.1)


# ---------------------------------------------------------------------------------------------------------- the fence


@pytest.mark.parametrize(
    "write",
    [
        lambda kube: kube.create(NODES, {"metadata": {"name": "a"}}),
        lambda kube: kube.replace(NODES, {"metadata": {"name": "a"}}),
        lambda kube: kube.patch(NODES, "a", {}, type=PatchType.MERGE),
        lambda kube: kube.delete(NODES, "a"),
        lambda kube: kube.raw("POST", "/api/v1/nodes", body={}),
    ],
    ids=["create", "replace", "patch", "delete", "raw"],
)
def test_a_write_that_the_fence_refuses_is_not_sent(server: ScriptedServer, write: Any) -> None:
    with pytest.raises(WriteRefused):
        write(server.kube.fenced(read_only))

    assert server.calls == []


def test_the_fence_is_asked_before_each_attempt_at_a_write(server: ScriptedServer) -> None:
    def fence() -> None:
        if server.calls:
            raise WriteRefused("the lease is lost")

    throttled = status(429, "TooManyRequests")
    throttled.headers["Retry-After"] = "0"
    server.script(throttled, Answer({}))

    with pytest.raises(WriteRefused):
        server.kube.fenced(fence).patch(NODES, "a", {}, type=PatchType.MERGE)

    assert len(server.calls) == 1


def test_neither_reads_nor_the_calls_with_a_timeout_of_their_own_are_fenced(server: ScriptedServer) -> None:
    kube = server.kube.fenced(read_only)

    kube.get(NODES, "a")
    kube.with_timeout(60).create(NODES, {"metadata": {"name": "a"}})

    assert [call.method for call in server.calls] == ["GET", "POST"]


def test_a_client_with_a_fence_leaves_the_one_that_it_was_made_from_without(server: ScriptedServer) -> None:
    kube = server.kube
    kube.fenced(read_only)

    kube.delete(NODES, "a")

    assert [call.method for call in server.calls] == ["DELETE"]
