"""The selection by `--target` and `--replace`, dependents, and the order of deletions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.engine.stack.resource import ResourceState
from local.engine.steps.deletion import Deletions, unprotected
from local.engine.steps.targets import Selection, Targets, needed_by


def resource(name: str, **fields: Any) -> ResourceState:
    return ResourceState(urn(name), "t:m:T", custom=True, **fields)


def urn(name: str, type: str = "t:m:T") -> str:
    return f"urn:pulumi:s::p::{type}::{name}"


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        (urn("a"), True),
        (urn("b"), False),
        ("urn:pulumi:s::p::t:m:T::*", True),
        ("urn:*::a", False),
        ("urn:**::a", True),
        ("**", True),
        ("**a**b**", False),
        ("urn:pulumi:s::p::t:m:.::a", False),
    ],
)
def test_a_star_matches_text_without_a_colon_and_two_stars_any_text(pattern: str, named: bool) -> None:
    assert Targets((pattern,)).names(urn("a")) is named


def test_an_unknown_urn_is_an_error_with_the_nearest_one_and_a_pattern_may_match_nothing() -> None:
    targets = Targets((urn("networt"), "nothing*"))
    (message,) = targets.unknown([urn("network"), urn("machine")])
    assert message == f"target {urn('networt')!r} could not be found in the stack; did you mean {urn('network')!r}?"


def test_only_a_similar_name_is_suggested() -> None:
    (message,) = Targets((urn("cluster"),)).unknown([urn("network"), urn("machine")])
    assert message == f"target {urn('cluster')!r} could not be found in the stack"


def test_the_error_for_a_urn_mangled_by_a_shell_suggests_quoting() -> None:
    (message,) = Targets((urn("a", "t:m:T"),)).unknown([urn("a", "t:m:P$t:m:T")])
    assert message.endswith(f"did you mean {urn('a', 't:m:P$t:m:T')!r}?; quote the `$` of a URN for the shell")


def test_a_pattern_that_matches_nothing_is_idle() -> None:
    assert Targets(("**::a", "**::b", urn("c"))).idle([urn("a")]) == ["'**::b' matches no resource of the stack"]


def test_the_message_for_an_idle_pattern_suggests_the_nearest_name() -> None:
    (message,) = Targets(("**::networt",)).idle([urn("network"), urn("machine")])
    assert message.endswith(f"; did you mean {urn('network')!r}?")


def test_the_error_for_a_name_instead_of_a_urn_gives_the_urn() -> None:
    (message,) = Targets(("network",)).unknown([urn("network"), urn("machine")])
    assert message.endswith(f"a target is a URN, or a pattern such as '**::network': {urn('network')}")
    assert urn("network") in message and urn("machine") not in message


def test_dependents_include_children_and_a_providers_resources() -> None:
    provider = ResourceState(urn("x", "pulumi:providers:t"), "pulumi:providers:t", custom=True)
    managed = resource("managed", provider=f"{provider.urn}::id")
    child = resource("child", parent=managed.urn)
    user = resource("user", property_dependencies={"p": (child.urn,)})
    other = resource("other")

    found = Targets((provider.urn,)).with_dependents([user, child, managed, other, provider])

    assert found == {provider.urn, managed.urn, child.urn, user.urn}


def test_dependents_are_selected_only_on_request() -> None:
    target, user = resource("target"), resource("user", dependencies=(urn("target"),))
    narrow, wide = Selection(Targets((target.urn,))), Selection(Targets((target.urn,), dependents=True))

    assert narrow.includes(target, exists=True) and not narrow.includes(user, exists=True)
    assert wide.includes(target, exists=True) and wide.includes(user, exists=True)
    assert narrow.kept == {user.urn}


def test_a_provider_is_always_selected_but_its_resources_are_not() -> None:
    provider = ResourceState(urn("x", "pulumi:providers:t"), "pulumi:providers:t", custom=True)
    selection = Selection(Targets((urn("target"),), dependents=True))
    assert selection.includes(provider, exists=False)
    assert not selection.includes(resource("managed", provider=f"{provider.urn}::id"), exists=True)


def test_dependencies_are_transitive() -> None:
    a, b, c = resource("a"), resource("b", parent=urn("a")), resource("c", dependencies=(urn("b"),))
    assert needed_by([c.urn], [a, b, c]) == {a.urn, b.urn}


def test_dependencies_of_protected_resources_are_kept() -> None:
    a, b = resource("a"), resource("b", dependencies=(urn("a"),), protect=True)
    c = resource("c", dependencies=(urn("b"),))
    assert unprotected([a, b, c]) == [c]


graphs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


def graph(edges: list[tuple[int, int]]) -> list[ResourceState]:
    needs = {n: tuple(urn(str(low)) for high, low in edges if high == n and low < high) for n in range(10)}
    return [resource(str(n), dependencies=needs[n]) for n in range(10)]


@given(graphs, st.randoms(use_true_random=False))
def test_a_resource_is_deleted_as_soon_as_its_dependents_are(edges: Any, random: Any) -> None:
    resources = graph(edges)
    order, gone, running = Deletions(resources), set[str](), list[ResourceState]()

    while len(gone) < len(resources):
        while (found := order.take()) is not None:
            running.append(found)
        waiting = [r for r in resources if r.urn not in gone and r not in running]
        blocked = {needed for r in (*waiting, *running) for needed in r.requires()}
        assert not {r.urn for r in running} & blocked, "something that is there still needs it"
        assert {r.urn for r in waiting} <= blocked, "nothing needs it, and yet it waits"
        ended = running.pop(random.randrange(len(running)))
        gone.add(ended.urn)
        order.done(ended, ok=True)


@given(graphs, st.integers(0, 9))
def test_a_failed_deletion_keeps_only_the_dependencies_of_its_resource(edges: Any, failing: int) -> None:
    resources = graph(edges)
    order, gone = Deletions(resources), set[str]()

    while (found := order.take()) is not None:
        ok = found.urn != urn(str(failing))
        order.done(found, ok)
        gone |= {found.urn} if ok else set()

    kept = {urn(str(failing))} | needed_by([urn(str(failing))], resources)
    assert gone == {r.urn for r in resources} - kept


def test_a_replaced_resource_waits_for_the_dependents_of_its_urn() -> None:
    old = resource("a", id="1", delete=True)
    user = resource("user", id="2", delete=True, dependencies=(urn("a"),))
    order = Deletions([old, user])
    first = order.take()
    assert first == user and order.take() is None
    order.done(user, ok=True)
    assert order.take() == old


def test_a_cycle_in_a_damaged_state_can_be_deleted() -> None:
    order = Deletions([resource("a", dependencies=(urn("b"),)), resource("b", dependencies=(urn("a"),))])
    gone = []
    while (found := order.take()) is not None:
        gone.append(found.name)
        order.done(found, ok=True)
    assert sorted(gone) == ["a", "b"]
