"""The content of a hook's request: the engine's own side, for SDKs that pass more to their functions than Python's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pulumi.runtime.proto import callback_pb2, resource_pb2

from local.engine.program.hooks import Hooks, binding_of
from local.engine.stack.resource import ResourceState, Timeouts
from local.engine.steps.hooked import HookError
from local.plugins.values import UNKNOWN

pytestmark = pytest.mark.engine

URN = "urn:pulumi:dev::test::memory:index:Thing::machine"
OLD = ResourceState(
    URN,
    "memory:index:Thing",
    custom=True,
    id="machine-1",
    inputs={"size": 1},
    outputs={"size": 1, "address": "there"},
    dependencies=("urn:other",),
    protect=True,
    resource_hooks={"BeforeUpdate": ("hook",), "BeforeDelete": ("hook",), "OnError": ("retry",)},
)
NEW = ResourceState(
    URN,
    "memory:index:Thing",
    custom=True,
    inputs={"size": UNKNOWN},
    parent="urn:parent",
    provider="urn:provider::id",
    deleted_with="urn:other",
    replace_with=("urn:third",),
    retain_on_delete=True,
    ignore_changes=("size",),
    replace_on_changes=("kind",),
    hide_diffs=("text",),
    additional_secret_outputs=("token",),
    timeouts=Timeouts(create=90, delete=1.5),
    import_id="given",
    resource_hooks={"BeforeUpdate": ("hook",), "BeforeCreate": ("hook",)},
)


class Program:
    """Replaces the callbacks: records the requests."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def call(self, _callback: object, request: Any, answer: type[Any]) -> Any:
        self.asked.append(request)
        return answer()


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def hooks(program: Program) -> Hooks:
    run = SimpleNamespace(dry_run=False, stopping=False)
    return Hooks(cast(Any, run), cast(Any, program))


def register(hooks: Hooks, name: str = "hook") -> None:
    callback = callback_pb2.Callback(target="127.0.0.1:1", token=name)
    hooks.register(resource_pb2.RegisterResourceHookRequest(name=name, callback=callback))


def test_an_update_hook_gets_the_options_of_both_sides(hooks: Hooks, program: Program) -> None:
    register(hooks)
    hooks.before("update", OLD, NEW)

    (request,) = program.asked
    assert (request.urn, request.name, request.type, request.id) == (URN, "machine", OLD.type, "machine-1")
    assert request.old_options == resource_pb2.ResourceOptions(
        depends_on=["urn:other"],
        protect=True,
        retain_on_delete=False,
        hooks=resource_pb2.RegisterResourceRequest.ResourceHooksBinding(
            before_update=["hook"], before_delete=["hook"], on_error=["retry"]
        ),
    )
    expected = resource_pb2.ResourceOptions(
        parent="urn:parent",
        provider="urn:provider::id",
        deleted_with="urn:other",
        replace_with=["urn:third"],
        protect=False,
        retain_on_delete=True,
        ignore_changes=["size"],
        replace_on_changes=["kind"],
        hide_diff=["text"],
        additional_secret_outputs=["token"],
        custom_timeouts=resource_pb2.RegisterResourceRequest.CustomTimeouts(create="90s", delete="1.5s"),
        hooks=resource_pb2.RegisterResourceRequest.ResourceHooksBinding(before_create=["hook"], before_update=["hook"]),
    )
    setattr(expected, "import", "given")
    assert request.new_options == expected


def test_a_hook_does_not_get_a_missing_side(hooks: Hooks, program: Program) -> None:
    register(hooks)
    hooks.before("create", None, NEW)
    hooks.before("delete", OLD, None)

    create, delete = program.asked
    new, old = ("new_inputs", "new_options"), ("old_inputs", "old_outputs", "old_options")
    assert [create.HasField(f) for f in (*new, *old)] == [True, True, False, False, False]
    assert [delete.HasField(f) for f in (*new, *old)] == [False, False, True, True, True]
    assert (create.id, delete.id) == ("", "machine-1")


def test_an_error_hook_gets_the_operation_and_the_options(hooks: Hooks, program: Program) -> None:
    hooks.register_error_hook(resource_pb2.RegisterErrorHookRequest(name="retry"))
    assert not hooks.retry("delete", OLD, None, ["second", "first"])
    (request,) = program.asked
    assert (request.failed_operation, list(request.errors)) == ("delete", ["second", "first"])
    assert request.old_options.protect and not request.HasField("new_options")


def test_a_step_waits_for_a_hook_that_is_registered_a_moment_later(
    hooks: Hooks, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.engine.program.hooks.REGISTRATION_SECONDS", 120)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(hooks.before, "delete", OLD, None)
        register(hooks, "another")
        register(hooks)
        running.result(60)
    assert len(program.asked) == 1


def test_no_step_waits_for_a_hook_after_the_program_has_ended(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.engine.program.hooks.REGISTRATION_SECONDS", 120)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(hooks.before, "delete", OLD, None)
        hooks.complete()
        with pytest.raises(HookError, match='hook "hook" was not registered by the program'):
            running.result(60)


def test_a_hook_binding_has_only_the_bound_kinds() -> None:
    binding = resource_pb2.RegisterResourceRequest.ResourceHooksBinding(after_delete=["one", "two"], on_error=["three"])
    assert binding_of(binding) == {"AfterDelete": ("one", "two"), "OnError": ("three",)}


@pytest.mark.parametrize("name", ["", "hook"])
def test_a_second_hook_of_the_same_name_is_refused(hooks: Hooks, name: str) -> None:
    register(hooks)
    with pytest.raises(ValueError, match="name"):
        register(hooks, name)
