"""The dynamic resource DestroyGuard: what its provider tells the engine, and that nothing is deleted before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.output import UNKNOWN

from cloud_controller import clouds
from cloud_controller.binding import Binding
from cloud_controller.cloud import NotFound, Unavailable
from cloud_controller.unmanaged import Declared
from components import cluster_end
from components.destroy_guard import DestroyGuard, DestroyGuardProvider

TOKEN = "a-token-that-nobody-may-see"


def inputs(**more: Any) -> dict[str, Any]:
    return {
        "cloud": "mycloud",
        "cluster_id": "c-1",
        "network_id": "net-1",
        "cluster_uid": "uid-1",
        "services": ["default/web"],
        "claims": ["default/data"],
        "deadline": 60.0,
        **more,
    }


def provider() -> DestroyGuardProvider:
    config = {"p:mycloud": '{"endpoint": "http://127.16.0.1:7070"}', "p:mycloudToken": TOKEN}
    made = DestroyGuardProvider()
    request: Any = SimpleNamespace(config=Config(config, "p"))
    made.configure(request)
    return made


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What would be cleared away."""
    calls: list[tuple[Any, ...]] = []

    def clear(
        cloud: object,
        _open: object,
        declared: Declared,
        binding: Binding,
        deadline: float,
        _tell: object,
        *,
        delete: bool,
    ) -> None:
        calls.append((cloud, declared, binding, deadline, delete))

    monkeypatch.setattr(clouds, "load", lambda name, config: f"{name} {'with' if TOKEN in config else 'without'} token")
    monkeypatch.setattr(cluster_end, "clear", clear)
    monkeypatch.delenv(cluster_end.DELETE_UNMANAGED, raising=False)
    return calls


@pytest.mark.parametrize("wrong", ["5m", 0.0, -1.0])
def test_a_wrong_deadline_is_refused_before_a_destroy_meets_it(wrong: Any) -> None:
    [failure] = provider().check({}, inputs(deadline=wrong)).failures

    assert (failure.property, failure.reason) == ("deadline", f"{wrong!r}; allowed: seconds, more than 0")
    assert provider().check({}, inputs(deadline=UNKNOWN)).failures == []


def test_deleting_the_guard_clears_undeclared_objects(cleared: list[tuple[Any, ...]]) -> None:
    provider().delete("c-1", inputs())

    declared = Declared(frozenset({"default/web"}), frozenset({"default/data"}))
    assert cleared == [("mycloud with token", declared, Binding("uid-1"), 60.0, False)]


@pytest.mark.parametrize(("value", "deletes"), [("true", True), ("false", False), ("", False)])
def test_the_guard_deletes_only_if_the_environment_variable_is_true(
    cleared: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, value: str, deletes: bool
) -> None:
    monkeypatch.setenv(cluster_end.DELETE_UNMANAGED, value)

    provider().delete("c-1", inputs())

    assert [call[-1] for call in cleared] == [deletes]


def test_in_an_existing_cluster_the_guard_waits_and_clears_nothing(
    cleared: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(cluster_end, "clear_existing", lambda *args, **more: waited.append((args[2], more)))

    provider().delete("c-1", inputs(existing=True))
    provider().delete("c-1", inputs(existing=True, without_class=False))

    declared = Declared(frozenset({"default/web"}), frozenset({"default/data"}))
    assert cleared == []
    assert waited == [(declared, {"delete": False, "without_class": ours}) for ours in (True, False)]


def test_the_guard_is_updated_with_the_program_and_replaced_with_the_cluster() -> None:
    same = provider().diff("c-1", inputs(), inputs())
    more = provider().diff("c-1", inputs(), inputs(services=["default/web", "default/echo"]))
    other = provider().diff("c-1", inputs(), inputs(cluster_id=UNKNOWN))

    assert (same.changes, more.changes, more.replaces, other.replaces) == (False, True, [], ["cluster_id"])


def test_a_preview_with_an_unknown_cluster_uid_shows_no_change_of_the_guard() -> None:
    preview = provider().diff("c-1", inputs(), inputs(cluster_uid=UNKNOWN))

    assert not preview.changes


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors of the cloud when it is asked for access to the cluster."""
    errors: list[Exception] = []

    def cluster_access() -> str:
        raise errors[0]

    cloud = SimpleNamespace(cluster_access=cluster_access, load_balancers=None, cluster_id="c-1")
    monkeypatch.setattr(clouds, "load", lambda *_: cloud)
    monkeypatch.setattr(cluster_end, "owners_in_cloud", lambda _: [str(each) for each in errors[1:]])
    return errors


@pytest.mark.parametrize("left", [[], [Exception("default/shop")]], ids=["nothing is left", "a load balancer is left"])
def test_a_refresh_drops_the_guard_of_a_cluster_that_is_gone_if_the_cloud_shows_nothing_to_guard(
    access: list[Exception], left: list[Exception]
) -> None:
    access += [NotFound("no such cluster"), *left]

    gone = provider().read("c-1", inputs())

    assert (gone.id, gone.outs) == (("c-1", inputs()) if left else (None, {}))


def test_a_refresh_keeps_the_guard_while_the_cloud_does_not_answer(access: list[Exception]) -> None:
    access.append(Unavailable("no answer"))

    read = provider().read("c-1", inputs()).outs or {}

    assert read == inputs()
    assert provider().diff("c-1", read, inputs()).changes is False


def test_no_result_holds_a_credential(access: list[Exception]) -> None:
    access.append(Unavailable("no answer"))
    made = provider()

    results = [made.create(inputs()).outs, made.update("c-1", inputs(), inputs()).outs, made.read("c-1", inputs()).outs]

    assert results == [inputs()] * 3


def test_the_provider_is_pickled_by_reference() -> None:
    assert len(serialize_provider(DestroyGuardProvider())) < 120


def test_the_destroy_guard_has_its_own_resource_type(run_program: Any) -> None:
    program = lambda: DestroyGuard("x", cloud="mycloud", cluster_id="c", network_id="n", cluster_uid="u")  # noqa: E731

    [*_, registration] = run_program(program).registrations

    assert registration.request.type == "pulumi-python:dynamic/cloudcontroller:DestroyGuard"
