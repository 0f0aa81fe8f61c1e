"""Invariants of every program and every edit, tested on random ones; each run is a whole one, in process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.engine.stack.resource import ResourceState
from tests.local.engine.killable_stack import Killed, RunResult, Shop
from tests.local.engine.random_programs import HIDDEN, NODES, Program, names_of, programs, tried
from tests.local.engine.recordings import PASSPHRASE

pytestmark = pytest.mark.engine

UNCHANGED = {"same"}


@pytest.fixture(autouse=True)
def passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)


@contextmanager
def shop() -> Iterator[Shop]:
    with tempfile.TemporaryDirectory() as folder:
        yield Shop(Path(folder))


# A life


@tried(0.2)
@given(edits=st.lists(programs, min_size=1, max_size=3))
def test_previews_predict_ups_a_second_up_changes_nothing_and_destroy_leaves_nothing(edits: list[Program]) -> None:
    with shop() as stack:
        left: set[str] = set()
        for program in edits:
            left |= may_be_left(stack)
            before, files = stack.resources(), stack.files()
            stack.cloud.calls.clear()
            foretold, again = stack.preview(program), stack.preview(program)
            assert foretold.ok, foretold.errors
            assert (foretold.steps, foretold.counts) == (again.steps, again.counts)
            assert stack.cloud.calls == [] and stack.files() == files, "a preview changes nothing"

            outcome = stack.up(program)

            assert outcome.ok, outcome.errors
            assert_foretold(program, foretold, outcome)
            assert_deleted_in_order(stack, before)
            assert_as_declared(stack, program, left | may_be_left(stack))
            assert_in_order(stack)
            assert_settled(stack, program)
            assert_no_secret(stack, [foretold, outcome])

        left |= may_be_left(stack)
        before = stack.resources()
        stack.cloud.calls.clear()
        assert stack.destroy().ok
        assert_deleted_in_order(stack, before)
        assert set(stack.cloud.objects) <= left and stack.resources() == []


def may_be_left(stack: Shop) -> set[str]:
    """Objects that are not deleted when their resource is: retained, or deleted with another one."""
    return {key for key, resource in stack.managed().items() if resource.retain_on_delete or resource.deleted_with}


def assert_foretold(program: Program, foretold: RunResult, outcome: RunResult) -> None:
    affected = {urn for urn, op in foretold.steps.items() if op != "same"}
    uncertain = {n for n, node in enumerate(program.nodes) if depends_on_any(program, n, affected)}
    for urn, op in outcome.steps.items():
        number = number_of(urn)
        if number is None or number not in uncertain:
            assert foretold.steps.get(urn) == op, f"{urn}: {foretold.steps.get(urn)} was foretold, {op} was done"
        else:
            # A preview cannot know what an unknown will be; its predicted change may turn out to be none.
            assert op in ("same", "update", foretold.steps.get(urn)), f"{urn}: {op} was not foretold"
    assert foretold.steps.keys() == outcome.steps.keys()


def depends_on_any(program: Program, number: int, affected: set[str]) -> bool:
    """Whether an input of the node depends, directly or indirectly, on what changes."""
    numbers = {number_of(urn) for urn in affected}
    if not program.nodes[number].there:
        return False
    providers = program.nodes[number].provider is not None and any("pulumi:providers:" in urn for urn in affected)
    needs = program.present(program.nodes[number].needs, number)
    return providers or any(n in numbers or depends_on_any(program, n, affected) for n in needs)


def number_of(urn: str) -> int | None:
    found = [n for n in range(NODES) if urn.endswith(tuple(f"::{name}" for name in names_of(n)))]
    return found[0] if found else None


def assert_as_declared(stack: Shop, program: Program, left: set[str]) -> None:
    """Each declared resource has one object, and nothing else exists except what may be left."""
    known = stack.managed()
    assert known.keys() <= stack.cloud.objects.keys(), "something was lost"
    assert set(stack.cloud.objects) - known.keys() <= left, "something was made of which the state does not know"
    for number, node in enumerate(program.nodes):
        found = [r for r in known.values() if number_of(r.urn) == number]
        assert len(found) == int(node.there)
        for resource in found:
            made = stack.cloud.objects[next(key for key, r in known.items() if r is resource)]
            assert made["kind"] == node.kind
            assert node.ignores or made["size"] == node.size
            assert made.get("token") == (None if node.token is None else f"{HIDDEN}{node.token}")
            for n in program.present(node.needs, number):
                needed = next(r for r in known.values() if number_of(r.urn) == n)
                assert made[f"from{n}"] == f"address of {needed.id}", "it has the address of what is no more"


def assert_settled(stack: Shop, program: Program) -> None:
    stack.cloud.calls.clear()
    assert_nothing_done(stack.up(program))
    before = [refreshed(r) for r in stack.resources()]
    assert_nothing_done(stack.refresh())
    assert stack.resources() == before
    assert stack.cloud.calls == []


def refreshed(resource: ResourceState) -> ResourceState:
    """The state after a refresh that finds it unchanged."""
    return replace(resource, property_dependencies={k: v for k, v in resource.property_dependencies.items() if v})


def assert_nothing_done(reported: RunResult) -> None:
    assert reported.ok and set(reported.counts) <= UNCHANGED, reported.steps


def assert_in_order(stack: Shop) -> None:
    seen: set[str] = set()
    for resource in stack.resources():
        assert resource.requires() <= seen, f"{resource.urn} stands before what it needs"
        seen.add(resource.urn)


def assert_deleted_in_order(stack: Shop, before: list[ResourceState]) -> None:
    """Dependents were deleted before their dependencies, except for early deletions of replacements."""
    calls = [(verb, key.partition("/")[2]) for verb, key in stack.cloud.calls]
    gone = {name: n for n, (verb, name) in enumerate(calls) if verb == "delete"}
    made = {name.partition("~")[0]: n for n, (verb, name) in enumerate(calls) if verb == "create"}
    by_urn = {r.urn: r for r in before}
    for resource in before:
        for needed in (by_urn[urn] for urn in resource.requires() if urn in by_urn):
            if resource.id not in gone or needed.id not in gone:
                continue
            replaced_first = made.get(str(needed.id).partition("~")[0], -1) > gone[needed.id]
            assert replaced_first or gone[resource.id] < gone[needed.id], f"{resource.urn} needed {needed.urn} still"


def assert_no_secret(stack: Shop, tellings: list[RunResult]) -> None:
    texts = [*stack.files().values(), *(text for reported in tellings for text in reported.texts())]
    assert not [text for text in texts if HIDDEN in text]


# Kills


@tried(0.3)
@given(
    first=programs,
    second=programs | st.none(),
    kills=st.lists(st.tuples(st.integers(1, 25), st.booleans()), min_size=1, max_size=2),
)
def test_a_run_killed_at_any_journal_entry_and_resumed_ends_like_an_uninterrupted_one(
    first: Program, second: Program | None, kills: list[tuple[int, bool]]
) -> None:
    with shop() as stack, tempfile.TemporaryDirectory() as elsewhere:
        assert stack.up(first).ok
        reference = stack.copy(Path(elsewhere))
        run(reference, second)

        for kill_at, written in kills:
            with suppress(Killed):
                run(stack, second, kill_at, written)
            assert_no_secret(stack, [])
        run(stack, second)

        assert stack.result() == reference.result()
        if second is not None:
            assert_settled(stack, second)


@tried(0.1)
@given(first=programs, second=programs, third=programs, kill=st.tuples(st.integers(1, 25), st.booleans()))
def test_after_a_kill_the_program_may_be_another(
    first: Program, second: Program, third: Program, kill: tuple[int, bool]
) -> None:
    with shop() as stack:
        run(stack, without_leftovers(first))
        with suppress(Killed):
            run(stack, without_leftovers(second), *kill)
        assert stack.refresh().ok
        assert_no_secret(stack, [])

        run(stack, without_leftovers(third))

        assert_as_declared(stack, without_leftovers(third), set())
        assert_settled(stack, without_leftovers(third))


def without_leftovers(program: Program) -> Program:
    """The program with resources whose objects are deleted with them."""
    return replace(program, nodes=tuple(replace(n, retained=False, deleted_with=None) for n in program.nodes))


def run(stack: Shop, program: Program | None, kill_at: int | None = None, written: bool = False) -> None:
    """Up, or without a program destroy."""
    if program is None:
        reported = stack.destroy(kill_at=kill_at, written=written)
    else:
        reported = stack.up(program, kill_at=kill_at, written=written)
    assert reported.ok, reported.errors


# Names and protection


@tried(0.15)
@given(program=programs, renamed=st.frozensets(st.integers(0, NODES - 1)), inside=st.none() | st.integers(0, 1))
def test_a_resource_with_its_former_name_and_parent_as_aliases_stays_the_same(
    program: Program, renamed: frozenset[int], inside: int | None
) -> None:
    elsewhere = [replace(node, renamed=n in renamed, inside=inside) for n, node in enumerate(program.nodes)]
    edit = replace(program, nodes=tuple(elsewhere))
    with shop() as stack:
        assert stack.up(program).ok
        stack.cloud.calls.clear()

        foretold, outcome = stack.preview(edit), stack.up(edit)

        assert outcome.ok and foretold.steps == outcome.steps
        assert set(outcome.counts) <= UNCHANGED and stack.cloud.calls == []
        assert_settled(stack, edit)


@tried(0.15)
@given(first=programs, second=programs, protected=st.frozensets(st.integers(0, NODES - 1), min_size=1))
def test_a_protected_resource_is_never_deleted(first: Program, second: Program, protected: frozenset[int]) -> None:
    with shop() as stack:
        assert stack.up(replace(first, protected=protected)).ok
        safe = {key for key, resource in stack.managed().items() if resource.protect}

        for reported in (stack.up(replace(second, protected=protected)), stack.destroy()):
            assert safe <= set(stack.cloud.objects)
            assert reported.ok or any("protect" in error for error in reported.errors), reported.errors
