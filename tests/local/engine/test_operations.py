"""Runs that are targeted, continue after an error, refresh first, or only report; like the CLI's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime.settings import get_monitor

from local.engine.steps.targets import Targets

pytestmark = pytest.mark.engine


def urn(name: str) -> str:
    return f"urn:pulumi:dev::test::memory:index:Thing::{name}"


def at(*names: str, dependents: bool = False) -> Targets:
    return Targets(tuple(urn(n) for n in names), dependents=dependents)


def chain(kit: Any, size: int = 1, kind: str = "a", *, more: tuple[str, ...] = ()) -> Any:
    """`a`, `b` with an address of `a`'s, `c` that depends on `b`, and `other`."""

    def program() -> None:
        a = kit.Thing("a", size=size, kind=kind)
        b = kit.Thing("b", size=size, of=a.address)
        kit.Thing("c", size=size, opts=pulumi.ResourceOptions(depends_on=[b]))
        kit.Thing("other", size=size)
        for name in more:
            kit.Thing(name)
        pulumi.export("address", a.address)

    return program


def sizes(stack: Any) -> dict[str, Any]:
    return {name: r.outputs.get("size") for name, r in stack.resources().items() if r.custom}


# --target in preview and up.


def test_only_the_target_is_updated_and_the_others_stay_as_they_were(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.calls.clear()

    outcome = stack.up(chain(kit, size=2), targets=at("b"))

    assert outcome.ok and outcome.counts == {"same": 4, "update": 1}
    assert sizes(stack) == {"a": 1, "b": 2, "c": 1, "other": 1}
    assert stack.cloud.calls == ["check b", "diff b", "update b"], "the others are not even asked about"
    assert stack.up(chain(kit, size=2)).counts == {"same": 2, "update": 3}


def test_target_dependents_are_updated_on_request(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    assert stack.up(chain(kit, size=2), targets=at("b", dependents=True)).ok
    assert sizes(stack) == {"a": 1, "b": 2, "c": 2, "other": 1}


def test_a_new_resource_that_is_not_a_target_is_not_created(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    outcome = stack.up(chain(kit, more=("new", "newer")), targets=at("newer"))
    assert outcome.ok and outcome.counts == {"same": 5, "create": 1}
    assert "new" not in stack.resources() and stack.cloud.asked("create")[-1] == "create newer"


def test_a_target_with_an_uncreated_dependency_is_an_error_that_names_it(stack: Any, kit: Any) -> None:
    for run in (stack.preview, stack.up):
        outcome = run(chain(kit), targets=at("b"))
        assert not outcome.ok
        assert outcome.errors == [f"it depends on {urn('a')}, which does not exist and is not a --target"]
    assert not stack.cloud.asked("create")


def test_outputs_that_depend_on_uncreated_resources_stay(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))

    def program() -> None:
        new = kit.Thing("new")
        kit.Thing("other", size=2)
        pulumi.export("address", new.address)
        pulumi.export("both", pulumi.Output.concat(new.address, "!"))

    outcome = stack.up(program, targets=at("other"))

    assert outcome.ok and outcome.summary.new_outputs == {"address": "address of a-a"}


def test_an_unknown_target_fails_the_preview_before_anything_is_done(stack: Any, kit: Any) -> None:
    outcome = stack.preview(chain(kit), targets=at("othr"))
    assert not outcome.ok and f"did you mean {urn('other')!r}?" in outcome.errors[0]


def test_an_untargeted_component_stays_and_its_child_can_be_a_target(stack: Any, kit: Any) -> None:
    def program(size: int) -> Any:
        def body() -> None:
            group = kit.Group("g", size=size)
            group.register_outputs({"size": size})
            kit.Thing("child", size=size, opts=pulumi.ResourceOptions(parent=group))

        return body

    child = "urn:pulumi:dev::test::test:index:Group$memory:index:Thing::child"
    assert not stack.up(program(1), targets=Targets((child,))).ok, "it needs its parent"

    stack.up(program(1))
    assert stack.up(program(2), targets=Targets((child,))).ok
    assert stack.resources()["child"].outputs["size"] == 2 and stack.resources()["g"].outputs == {"size": 1}


def test_of_the_undeclared_resources_only_targets_are_deleted(stack: Any, kit: Any) -> None:
    stack.up(chain(kit, more=("x", "y")))
    outcome = stack.up(chain(kit), targets=at("x"))
    assert outcome.ok and outcome.counts == {"same": 5, "delete": 1}
    assert "y" in stack.resources() and "x" not in stack.resources()


def test_dependents_of_a_deleted_target_must_be_targets_too(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))

    def without_b_and_c() -> None:
        kit.Thing("a", size=1, kind="a")
        kit.Thing("other", size=1)

    for run in (stack.preview, stack.up):
        outcome = run(without_b_and_c, targets=at("b"))
        assert not outcome.ok and "--target-dependents" in outcome.errors[0] and urn("c") in outcome.errors[0]
    assert not stack.cloud.asked("delete")

    assert stack.up(without_b_and_c, targets=at("b", dependents=True)).ok
    assert stack.cloud.asked("delete") == ["delete c", "delete b"]


def test_a_delete_first_replacement_of_a_target_needs_its_dependents_as_targets(stack: Any, kit: Any) -> None:
    def program(kind: str) -> Any:
        def body() -> None:
            a = kit.Thing("a", kind=kind, opts=pulumi.ResourceOptions(delete_before_replace=True))
            kit.Thing("b", kind=a.address)

        return body

    stack.up(program("x"))
    for run in (stack.preview, stack.up):
        outcome = run(program("y"), targets=at("a"))
        assert not outcome.ok and "--target-dependents" in outcome.errors[0] and urn("b") in outcome.errors[0]
    assert not stack.cloud.asked("delete")

    assert stack.up(program("y"), targets=at("a", dependents=True)).counts == {"replace": 2, "same": 1}
    assert stack.cloud.asked("delete") == ["delete b", "delete a"]


def test_a_create_first_replacement_of_a_target_leaves_its_dependents_alone(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    outcome = stack.up(chain(kit, kind="z"), targets=at("a"))
    assert outcome.ok and outcome.counts == {"replace": 1, "same": 4}
    assert stack.cloud.asked("delete") == ["delete a"]
    assert stack.up(chain(kit, kind="z")).counts == {"same": 4, "update": 1}, "b learns of the new address now"


@pytest.mark.parametrize("operation", ["preview", "up", "refresh", "destroy"])
def test_a_run_without_any_matching_target_fails_and_changes_nothing(stack: Any, kit: Any, operation: str) -> None:
    stack.up(chain(kit))
    of_program = (chain(kit, size=2),) if operation in ("preview", "up") else ()
    outcome = getattr(stack, operation)(*of_program, targets=Targets(("**::othr",)))
    assert not outcome.ok and set(outcome.counts) <= {"same"}
    (message,) = outcome.errors
    assert message == f"'**::othr' matches no resource of the stack; did you mean {urn('other')!r}?"


def test_one_of_several_patterns_that_matches_nothing_is_a_warning(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    outcome = stack.up(chain(kit, size=2), targets=Targets(("**::nobody", "**::other")))
    assert outcome.ok
    assert outcome.warnings == ["'**::nobody' matches no resource of the stack"]


# --replace.


def test_replace_replaces_an_unchanged_resource(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    planned = stack.preview(chain(kit), replaces=at("other"))
    outcome = stack.up(chain(kit), replaces=at("other"))
    assert planned.counts == outcome.counts == {"same": 4, "replace": 1}
    assert stack.cloud.asked("delete", "create")[-2:] == ["delete other", "create other"]


def test_replace_does_not_replace_a_protected_resource(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("a", opts=pulumi.ResourceOptions(protect=True))

    stack.up(program)
    outcome = stack.up(program, replaces=at("a"))
    assert not outcome.ok and "protected" in outcome.errors[0] and not stack.cloud.asked("delete")


def test_replacing_an_unknown_resource_is_an_error(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    outcome = stack.up(chain(kit, size=2), replaces=at("nothing"))
    assert not outcome.ok and "could not be found" in outcome.errors[0] and not stack.cloud.asked("update")


def test_replacing_an_untargeted_resource_is_an_error(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    outcome = stack.preview(chain(kit), targets=at("a"), replaces=at("other"))
    assert not outcome.ok and "--replace selects it, but --target does not" in outcome.errors[0]


# --continue-on-error.


def test_with_continue_on_error_independent_resources_continue(stack: Any, kit: Any) -> None:
    stack.cloud.faults["create b"] = kit.ProviderError("no")

    outcome = stack.up(chain(kit), continue_on_error=True)

    assert not outcome.ok and outcome.errors == ["no"]
    assert sizes(stack) == {"a": 1, "other": 1}
    assert outcome.summary.new_outputs == {"address": "address of a-a"}
    stack.cloud.faults.clear()
    assert stack.up(chain(kit)).counts == {"same": 3, "create": 2}


def test_dependents_of_a_failed_resource_are_neither_changed_nor_deleted(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.faults["update a"] = kit.ProviderError("no")

    outcome = stack.up(chain(kit, size=2), continue_on_error=True)

    assert not outcome.ok and sizes(stack) == {"a": 1, "b": 1, "c": 1, "other": 2}
    assert not stack.cloud.asked("delete")


def test_undeclared_resources_are_deleted_after_an_error_unless_a_failed_one_depends_on_them(
    stack: Any, kit: Any
) -> None:
    def before() -> None:
        old = kit.Thing("old")
        kit.Thing("user", size=1, of=old.address)
        kit.Thing("unused")

    def after() -> None:
        kit.Thing("user", size=2, of="")

    stack.up(before)
    stack.cloud.faults["update user"] = kit.ProviderError("no")
    outcome = stack.up(after, continue_on_error=True)
    assert not outcome.ok and stack.cloud.asked("delete") == ["delete unused"]
    stack.cloud.faults.clear()
    assert stack.up(after).ok and set(sizes(stack)) == {"user"}


def test_children_of_a_component_that_failed_are_skipped(stack: Any, kit: Any) -> None:
    stack.cloud.faults["create parent"] = kit.ProviderError("no")

    def program() -> None:
        parent = kit.Thing("parent")
        kit.Thing("child", opts=pulumi.ResourceOptions(parent=parent))
        kit.Thing("other")

    outcome = stack.up(program, continue_on_error=True)
    assert outcome.errors == ["no"] and set(sizes(stack)) == {"other"}


def test_a_failed_program_deletes_nothing_even_with_continue_on_error(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))

    def failing() -> None:
        kit.Thing("a", size=1, kind="a")
        raise RuntimeError("half way")

    outcome = stack.up(failing, continue_on_error=True)
    assert not outcome.ok and "half way" in outcome.errors[0] and not stack.cloud.asked("delete")


def test_a_destroy_continues_with_what_the_failed_resource_does_not_depend_on(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.faults["delete b"] = kit.ProviderError("no")

    assert not stack.destroy(continue_on_error=True).ok

    assert set(sizes(stack)) == {"a", "b"}
    stack.cloud.faults.clear()
    assert stack.destroy().ok and not stack.open().store.snapshot.resources


def test_a_destroy_starts_nothing_new_after_a_failure(stack: Any, kit: Any) -> None:
    def program() -> None:
        kit.Thing("a")
        kit.Thing("b")

    stack.up(program)
    stack.cloud.faults |= {"delete a": kit.ProviderError("no"), "delete b": kit.ProviderError("no")}
    assert not stack.destroy(parallel=1).ok
    assert len(stack.cloud.asked("delete")) == 1 and set(sizes(stack)) == {"a", "b"}


# --parallel.


def test_with_parallel_1_a_step_starts_when_the_previous_one_is_done(stack: Any, kit: Any) -> None:
    def program() -> None:
        for n in range(8):
            kit.Thing(f"t{n}")

    outcome = stack.up(program, parallel=1)
    assert outcome.ok and len(stack.cloud.asked("create")) == 8
    work = [e for e in outcome.events if getattr(getattr(e, "step", None), "type", "") == "memory:index:Thing"]
    names = [type(e).__name__ for e in work]
    assert names == ["StepStarted", "StepDone"] * 8
    assert stack.destroy(parallel=1).ok and len(stack.cloud.asked("delete")) == 8


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_waiting_step_does_not_start_after_another_fails(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, parallel: int
) -> None:
    note, changed = stack.cloud.note, threading.Condition()

    def noting(verb: str, urn: str, timeout: float = 0) -> None:
        note(verb, urn, timeout)
        with changed:
            changed.notify_all()
            if verb == "create":
                assert changed.wait_for(lambda: len(stack.cloud.asked("check")) == 12, 60)
                raise kit.ProviderError("quota exceeded")

    monkeypatch.setattr(stack.cloud, "note", noting)

    assert not stack.up(lambda: [kit.Thing(f"t{n}") for n in range(12)], parallel=parallel).ok
    assert 1 <= len(stack.cloud.asked("create")) <= parallel


def test_an_interrupted_preview_starts_nothing_new(stack: Any, kit: Any) -> None:
    def program() -> None:
        monitor: Any = get_monitor()
        first = kit.Thing("first")
        kit.Thing("second", net=first.address.apply(lambda _: monitor.interrupt()))

    stack.up(lambda: kit.Thing("first"))
    stack.cloud.calls.clear()

    outcome = stack.preview(program)

    assert not outcome.ok and outcome.errors[0].startswith("interrupted")
    assert stack.cloud.asked("check") == ["check first"]


# --refresh.


def test_a_preview_with_refresh_plans_from_the_real_state_and_writes_nothing(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.objects["other-a"]["size"] = 7
    del stack.cloud.objects["c-a"]
    before = stack.files()

    assert stack.preview(chain(kit)).counts == {"same": 5}
    assert stack.preview(chain(kit), refresh=True).counts == {"same": 3, "update": 1, "create": 1}

    assert stack.files() == before
    assert stack.up(chain(kit), refresh=True).counts == {"same": 3, "update": 1, "create": 1}
    assert stack.up(chain(kit), refresh=True).counts == {"same": 5}


def test_a_failed_read_stops_an_up_with_refresh(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.faults["read a"] = kit.ProviderError("the cloud is down")
    outcome = stack.up(chain(kit, size=2), refresh=True, continue_on_error=True)
    assert not outcome.ok and not stack.cloud.asked("update")


def test_a_destroy_with_refresh_does_not_delete_missing_objects(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    del stack.cloud.objects["c-a"]
    assert stack.destroy(refresh=True).ok
    assert sorted(stack.cloud.asked("delete")) == ["delete a", "delete b", "delete other"]


def test_a_refresh_reads_the_targets_only(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.calls.clear()
    stack.refresh(targets=at("a"))
    assert stack.cloud.asked("read") == ["read a"]
    stack.refresh(targets=at("b", dependents=True))
    assert sorted(stack.cloud.asked("read")) == ["read a", "read b", "read c"]


def test_drift_is_reported_once_because_the_state_then_has_it(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    stack.cloud.objects["other-a"]["size"] = 7
    assert stack.refresh(preview_only=True).counts == stack.refresh(preview_only=True).counts
    assert stack.refresh().counts == {"same": 4, "update": 1}
    assert stack.refresh().counts == {"same": 5}
    assert stack.preview(chain(kit)).counts == {"same": 4, "update": 1}, "and what is wanted is compared with that"


# Reporting only; protection.


@pytest.mark.parametrize("operation", ["refresh", "destroy"])
def test_a_preview_of_a_refresh_changes_nothing(stack: Any, kit: Any, operation: str) -> None:
    stack.up(chain(kit))
    stack.cloud.objects["other-a"]["size"] = 7
    before, objects = stack.files(), dict(stack.cloud.objects)

    outcome = getattr(stack, operation)(preview_only=True)

    assert outcome.ok and outcome.summary.planning and (stack.files(), stack.cloud.objects) == (before, objects)
    assert outcome.counts == ({"same": 4, "update": 1} if operation == "refresh" else {"delete": 5})


def test_exclude_protected_keeps_protected_resources_and_their_dependencies(stack: Any, kit: Any) -> None:
    def program() -> None:
        a = kit.Thing("a")
        b = kit.Thing("b", of=a.address, opts=pulumi.ResourceOptions(protect=True))
        kit.Thing("c", of=b.address)

    stack.up(program)
    assert not stack.destroy().ok and not stack.cloud.asked("delete")
    assert stack.destroy(exclude_protected=True).ok
    assert stack.cloud.asked("delete") == ["delete c"] and set(sizes(stack)) == {"a", "b"}


def test_a_targeted_destroy_deletes_only_targets_and_requested_dependents(stack: Any, kit: Any) -> None:
    stack.up(chain(kit))
    outcome = stack.destroy(targets=at("b"))
    assert not outcome.ok and "--target-dependents" in outcome.errors[0] and not stack.cloud.asked("delete")
    for program in (None, chain(kit)):
        unknown = stack.destroy(program, targets=at("nobody"))
        assert not unknown.ok and "could not be found" in unknown.errors[0]
    assert stack.destroy(targets=at("b", dependents=True)).ok
    assert set(sizes(stack)) == {"a", "other"} and stack.resources()["test-dev"].outputs


# Deletions by data flow.


def test_a_deletion_waits_only_for_its_dependents(stack: Any, kit: Any) -> None:
    """`slow` is deleted while `a`, two steps down another chain, is: in waves it would wait in vain."""
    stack.up(chain(kit, more=("slow",)))
    stack.cloud.outlives["slow"] = "a-a"
    assert stack.destroy().ok and not stack.cloud.objects


# Killed.

PROGRAM = """
import os, signal
from pulumi.dynamic import CreateResult, Resource, ResourceProvider, UpdateResult

class Counted(ResourceProvider):
    def create(self, props):
        return CreateResult(props["name"], dict(props))
    def update(self, id, olds, news):
        if os.environ.get("KILL") and news["name"] == "b":
            # In the middle of its work: who asked for it is gone, nobody takes the answer.
            os.kill(os.getppid(), signal.SIGKILL)
        return UpdateResult(dict(news))

class Counter(Resource, module="counters", name="Counter"):
    def __init__(self, name, opts=None):
        super().__init__(Counted(), name, {"name": name, "size": os.environ["SIZE"]}, opts)
"""


def test_a_killed_targeted_run_leaves_other_resources_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: test\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "counters.py").write_text(PROGRAM)
    (tmp_path / "__main__.py").write_text("from counters import Counter\nfor n in 'abc': Counter(n)\n")
    where = ["-s", "dev", "-C", str(tmp_path), "--state", str(tmp_path / "state")]

    def up(size: str, *options: str, kill: bool = False) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "local.engine", "up", "--skip-preview", *options, *where]
        environment = {**os.environ, "SIZE": size, "KILL": "1" if kill else ""}
        return subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    first = up("1")
    assert first.returncode == 0, first.stdout
    targeted = ["--target", "urn:pulumi:dev::test::pulumi-python:dynamic/counters:Counter::b"]
    killed = up("2", *targeted, kill=True)
    assert killed.returncode == -signal.SIGKILL, killed.stdout

    again = up("2", *targeted)

    assert again.returncode == 0, again.stdout
    assert "interrupted while updating" in again.stdout
    shown = subprocess.run(
        [sys.executable, "-m", "local.engine", "stack", "export", *where], capture_output=True, text=True, check=True
    ).stdout
    assert shown.count('"size": "2"') == 2 and shown.count('"size": "1"') == 4, "inputs and outputs of each"
