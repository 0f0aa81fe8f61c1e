"""What holds for every program, tried on random ones: previews tell the truth, up settles, destroy leaves nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pulumi import ResourceOptions

pytestmark = pytest.mark.engine

# Of each of up to six resources: whether it is there, its size (updates), its kind (replaces), which earlier ones its
# inputs come from, whether it is deleted before it is replaced, and whether it has a component around it.
node = st.tuples(
    st.booleans(), st.integers(1, 2), st.sampled_from("xy"), st.sets(st.integers(0, 5)), st.booleans(), st.booleans()
)
programs = st.lists(node, min_size=6, max_size=6)


def declare(kit: Any, nodes: list[Any]) -> Callable[[], None]:
    def run() -> None:
        made: dict[int, Any] = {}
        for index, (there, size, kind, needs, delete_first, inside) in enumerate(nodes):
            if not there:
                continue
            parent = kit.Group(f"group-{index}") if inside else None
            inputs = {f"from{n}": made[n].address for n in needs if n in made}
            opts = ResourceOptions(parent=parent, delete_before_replace=delete_first)
            made[index] = kit.Thing(name(index, inside), opts, size=size, kind=kind, **inputs)

    return run


def declared(nodes: list[Any]) -> set[str]:
    return {f"{name(i, inside)}-{kind}" for i, (there, _, kind, _, _, inside) in enumerate(nodes) if there}


def name(index: int, inside: bool) -> str:
    """One that moves into a component is another resource, and the cloud in memory goes by names."""
    return f"{'inner' if inside else 'outer'}-{index}"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=programs, second=programs)
def test_previews_are_true_up_settles_and_destroy_leaves_nothing(
    stack: Any, kit: Any, first: list[Any], second: list[Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fresh = type(stack)(Path(folder))
        for nodes in (first, second):
            program = declare(kit, nodes)
            fresh.cloud.calls.clear()
            foretold = fresh.preview(program)
            assert fresh.cloud.asked("create", "update", "delete") == []

            outcome = fresh.up(program)

            assert outcome.ok, outcome.errors
            assert set(fresh.cloud.objects) == declared(nodes)
            # What an unknown will be no preview knows: an update or replacement may be foretold that does not come.
            assert foretold.counts.get("delete", 0) == outcome.counts.get("delete", 0)
            assert foretold.counts.get("create", 0) == outcome.counts.get("create", 0)
            assert set(fresh.up(program).counts) <= {"same"}
            assert set(fresh.refresh().counts) <= {"same"}
            assert set(fresh.up(program).counts) <= {"same"}
            assert_in_order(fresh)

        assert fresh.destroy().ok
        assert fresh.cloud.objects == {} and fresh.open().store.snapshot.resources == {}


def assert_in_order(stack: Any) -> None:
    seen: set[str] = set()
    for resource in stack.open().store.snapshot.ordered():
        assert resource.requires() <= seen, f"{resource.urn} stands before what it needs"
        seen.add(resource.urn)
