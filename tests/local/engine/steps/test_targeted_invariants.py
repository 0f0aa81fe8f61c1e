"""Invariants of every targeted run: other resources stay, and a kill loses nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import ResourceOptions

from local.engine.steps.deletion import unprotected
from local.engine.steps.targets import Targets, needed_by
from tests.local.engine.killable_stack import Killed
from tests.local.engine.random_programs import tried

pytestmark = pytest.mark.engine

NAMES = [f"t{n}" for n in range(6)]
# For each of six resources: its size (updates), its kind (replaces), its dependencies on earlier ones, and whether it
# is deleted before it is replaced.
node = st.tuples(st.integers(1, 2), st.sampled_from("xy"), st.sets(st.integers(0, 5)), st.booleans())
programs = st.lists(node, min_size=6, max_size=6)
chosen = st.sets(st.sampled_from(NAMES), min_size=1)


def urn(name: str) -> str:
    return f"urn:pulumi:dev::test::memory:index:Thing::{name}"


def declare(kit: Any, nodes: list[Any], protected: frozenset[str] = frozenset()) -> Callable[[], None]:
    def run() -> None:
        made: list[Any] = []
        for name, (size, kind, needs, delete_first) in zip(NAMES, nodes, strict=True):
            inputs = {f"from{n}": made[n].address for n in needs if n < len(made)}
            opts = ResourceOptions(delete_before_replace=delete_first, protect=name in protected)
            made.append(kit.Thing(name, opts, size=size, kind=kind, **inputs))

    return run


def things(stack: Any) -> dict[str, Any]:
    return {n: r for n, r in stack.resources().items() if n in NAMES}


@tried(0.15)
@given(first=programs, second=programs, names=chosen, dependents=st.booleans())
def test_untargeted_resources_stay_exactly_as_they_are(
    stack: Any, kit: Any, first: list[Any], second: list[Any], names: set[str], dependents: bool
) -> None:
    # The dependencies are the same before and after: a target with a new dependency is another case.
    second = [(*after[:2], before[2], after[3]) for before, after in zip(first, second, strict=True)]
    targets = Targets(tuple(urn(n) for n in names), dependents=dependents)
    with tempfile.TemporaryDirectory() as folder:
        fresh = type(stack)(Path(folder))
        assert fresh.up(declare(kit, first)).ok
        before = things(fresh)
        covered = targets.with_dependents(before.values()) if dependents else {urn(n) for n in names}

        planned = fresh.preview(declare(kit, second), targets=targets)
        assert things(fresh) == before
        outcome = fresh.up(declare(kit, second), targets=targets)

        assert planned.ok == outcome.ok
        if not outcome.ok:
            # Only a delete-first replacement needs more than the targets.
            assert not dependents and all("--target-dependents" in e for e in outcome.errors)
        after = things(fresh)
        assert {n: r for n, r in after.items() if urn(n) not in covered} == {
            n: r for n, r in before.items() if urn(n) not in covered
        }
        assert fresh.up(declare(kit, second)).ok and set(fresh.up(declare(kit, second)).counts) == {"same"}


@tried(0.15)
@given(first=programs, second=programs, names=chosen, moment=st.integers(0, 8), late=st.booleans())
def test_a_killed_targeted_run_is_finished_by_the_next(
    stack: Any, kit: Any, first: list[Any], second: list[Any], names: set[str], moment: int, late: bool
) -> None:
    second = [(*after[:2], before[2], after[3]) for before, after in zip(first, second, strict=True)]
    targets = Targets(tuple(urn(n) for n in names), dependents=True)
    with tempfile.TemporaryDirectory() as folder:
        fresh = type(stack)(Path(folder))
        assert fresh.up(declare(kit, first)).ok
        done = len(fresh.cloud.asked("create", "update", "delete"))
        rehearsal = type(stack)(Path(tempfile.mkdtemp(dir=folder)))
        assert rehearsal.up(declare(kit, first)).ok and rehearsal.up(declare(kit, second), targets=targets).ok
        calls = rehearsal.cloud.asked("create", "update", "delete")[done:]
        if calls:
            faults = fresh.cloud.after if late else fresh.cloud.faults
            faults[calls[moment % len(calls)]] = Killed()
            with pytest.raises(Killed):
                fresh.up(declare(kit, second), targets=targets)
            faults.clear()

        outcome = fresh.up(declare(kit, second), targets=targets)

        assert outcome.ok, outcome.errors
        assert fresh.cloud.objects == rehearsal.cloud.objects
        assert not fresh.open().store.snapshot.pending
        assert {n: (r.id, r.inputs) for n, r in things(fresh).items()} == {
            n: (r.id, r.inputs) for n, r in things(rehearsal).items()
        }


@tried(0.15)
@given(nodes=programs, failing=st.sampled_from(NAMES))
def test_continuing_after_an_error_does_everything_that_does_not_depend_on_the_failure(
    stack: Any, kit: Any, nodes: list[Any], failing: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fresh = type(stack)(Path(folder))
        fresh.cloud.faults[f"create {failing}"] = kit.ProviderError("no")
        assert not fresh.up(declare(kit, nodes), continue_on_error=True).ok
        made = things(fresh)

        fresh.cloud.faults.clear()
        assert fresh.up(declare(kit, nodes)).ok
        everything = things(fresh).values()
        needing = Targets((urn(failing),)).with_dependents(everything)
        assert {urn(n) for n in made} == {urn(n) for n in NAMES} - needing

        fresh.cloud.faults[f"delete {failing}"] = kit.ProviderError("no")
        assert not fresh.destroy(continue_on_error=True).ok
        needed = needed_by([urn(failing)], everything)
        assert {urn(n) for n in things(fresh)} == {urn(failing)} | {u for u in needed if "memory:index" in u}


@tried(0.15)
@given(nodes=programs, protected=st.frozensets(st.sampled_from(NAMES)))
def test_protected_resources_and_their_dependencies_survive_a_destroy(
    stack: Any, kit: Any, nodes: list[Any], protected: frozenset[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fresh = type(stack)(Path(folder))
        assert fresh.up(declare(kit, nodes, protected)).ok
        before = fresh.open().store.snapshot.all()
        gone = {r.urn for r in unprotected(before)}

        assert fresh.destroy(exclude_protected=True).ok

        left = {r.urn for r in fresh.open().store.snapshot.all()}
        assert left == {r.urn for r in before} - gone and {urn(n) for n in protected} <= left
