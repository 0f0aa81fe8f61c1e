"""A resource with a changed name, parent or type stays the same if it has an alias."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pulumi
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import Alias, ResourceOptions

from local.engine.program.goal import Alias as GoalAlias
from local.engine.program.goal import Goal
from local.engine.stack.journal import Journal
from local.engine.stack.references import following
from local.engine.stack.resource import ResourceState
from local.engine.steps.aliases import former_urns
from tests.local.engine.killable_stack import Killed
from tests.local.engine.random_programs import tried

pytestmark = pytest.mark.engine

URN = "urn:pulumi:dev::test::"


class Box(pulumi.ComponentResource):
    """A component of a type of its own, with one resource that is named after it."""

    def __init__(self, kit: Any, name: str, type: str = "test:index:Box", opts: Any = None) -> None:
        super().__init__(type, name, None, opts)
        self.inner = kit.Thing(f"{name}-inner", ResourceOptions(parent=self), size=1)


def urns(stack: Any) -> set[str]:
    return {r.urn.removeprefix(URN) for r in stack.open().store.snapshot.all() if "default" not in r.urn}


def unchanged(stack: Any, program: Any) -> Any:
    """Run the program: a preview and an up that find everything unchanged and touch no object."""
    stack.cloud.calls.clear()
    before = stack.files()
    preview = stack.preview(program)
    assert preview.ok, preview.errors
    assert stack.files() == before, "a preview writes nothing"
    outcome = stack.up(program)
    assert outcome.ok, outcome.errors
    assert outcome.counts == preview.counts and set(outcome.counts) == {"same"}
    assert stack.cloud.asked("create", "update", "delete") == []
    assert stack.up(program).counts == outcome.counts
    return outcome


@pytest.mark.parametrize(
    "alias",
    [Alias(name="old"), f"{URN}memory:index:Thing::old", Alias(name="old", stack="dev", project="test", parent=None)],
)
def test_a_renamed_resource_is_the_same_and_its_old_urn_leaves_the_state(stack: Any, kit: Any, alias: Any) -> None:
    stack.up(lambda: kit.Thing("old", size=1))

    unchanged(stack, lambda: kit.Thing("new", ResourceOptions(aliases=[alias]), size=1))

    assert urns(stack) == {"memory:index:Thing::new", "pulumi:pulumi:Stack::test-dev"}
    assert stack.resources()["new"].id == "old-a"
    assert stack.destroy().ok and stack.cloud.objects == {}


def test_a_renamed_resource_with_changes_is_updated_or_replaced(stack: Any, kit: Any) -> None:
    aliased = ResourceOptions(aliases=[Alias(name="old")])
    stack.up(lambda: kit.Thing("old", size=1, kind="a"))

    assert stack.up(lambda: kit.Thing("new", aliased, size=2, kind="a")).counts == {"same": 1, "update": 1}
    assert stack.cloud.objects == {"old-a": {"size": 2, "kind": "a"}}

    aliased = ResourceOptions(aliases=[Alias(name="new")])
    assert stack.up(lambda: kit.Thing("newest", aliased, size=2, kind="b")).counts == {"same": 1, "replace": 1}
    assert stack.cloud.objects == {"newest-b": {"size": 2, "kind": "b"}}
    assert urns(stack) == {"memory:index:Thing::newest", "pulumi:pulumi:Stack::test-dev"}


def test_children_named_after_a_renamed_component_are_renamed_with_it(stack: Any, kit: Any) -> None:
    stack.up(lambda: Box(kit, "old"))

    unchanged(stack, lambda: Box(kit, "new", opts=ResourceOptions(aliases=[Alias(name="old")])))

    assert "test:index:Box$memory:index:Thing::new-inner" in urns(stack) and len(urns(stack)) == 3


def test_children_of_a_component_of_a_new_type_and_place_follow_it(stack: Any, kit: Any) -> None:
    stack.up(lambda: Box(kit, "old", "test:index:Box"))

    def program() -> None:
        parent = kit.Group("group")
        aliases = [Alias(name="old", type_="test:index:Box", parent=None)]
        Box(kit, "new", "test:index:Crate", ResourceOptions(parent=parent, aliases=aliases))

    stack.cloud.calls.clear()
    assert stack.up(program).counts == {"create": 1, "same": 3}
    assert stack.cloud.asked("create", "update", "delete") == []
    assert "test:index:Group$test:index:Crate$memory:index:Thing::new-inner" in urns(stack)
    assert stack.resources()["new-inner"].parent == stack.resources()["new"].urn
    assert stack.up(program).counts == {"same": 4}


def test_a_resource_moved_out_of_its_parent_is_found_by_an_alias(stack: Any, kit: Any) -> None:
    def before() -> None:
        kit.Thing("thing", ResourceOptions(parent=kit.Group("group")))

    def after() -> None:
        group = kit.Group("group")
        kit.Thing("thing", ResourceOptions(aliases=[Alias(parent=group)]))

    stack.up(before)
    unchanged(stack, after)
    assert "memory:index:Thing::thing" in urns(stack) and len(urns(stack)) == 3


def test_references_to_a_renamed_resource_follow(stack: Any, kit: Any) -> None:
    class Cloud(pulumi.ProviderResource):
        def __init__(self, name: str, opts: Any = None) -> None:
            super().__init__("memory", name, {"region": "here"}, opts)

    def program(suffix: str, *aliases: Alias) -> Any:
        def run() -> None:
            opts = ResourceOptions(aliases=list(aliases))
            cloud = Cloud(f"cloud{suffix}", opts and ResourceOptions(aliases=[Alias(name="cloud")]))
            base = kit.Thing(f"base{suffix}", opts)
            others = ResourceOptions(provider=cloud, depends_on=[base], deleted_with=base)
            kit.Thing("user", others, net=base.address)

        return run

    stack.up(program(""))
    unchanged(stack, program("2", Alias(name="base")))

    user = stack.resources()["user"]
    base, cloud = f"{URN}memory:index:Thing::base2", f"{URN}pulumi:providers:memory::cloud2"
    assert user.dependencies == (base,) and user.property_dependencies == {"net": (base,)}
    assert user.deleted_with == base and user.provider.startswith(f"{cloud}::")


def test_an_alias_without_an_old_resource_has_no_effect(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(aliases=[Alias(name="never"), Alias(type_="memory:index:Older")])

    assert stack.up(lambda: kit.Thing("new", opts)).counts == {"create": 2}
    assert stack.up(lambda: kit.Thing("new", opts)).counts == {"same": 2}


def test_a_resources_own_name_precedes_its_aliases(stack: Any, kit: Any) -> None:
    stack.up(lambda: [kit.Thing("new"), kit.Thing("old")])

    outcome = stack.up(lambda: kit.Thing("new", ResourceOptions(aliases=[Alias(name="old")])))

    assert outcome.counts == {"same": 2, "delete": 1} and list(stack.cloud.objects) == ["new-a"]


def test_two_resources_cannot_take_over_the_same_old_one(stack: Any, kit: Any) -> None:
    aliased = ResourceOptions(aliases=[Alias(name="old")])
    stack.up(lambda: kit.Thing("old"))

    for program in (
        lambda: [kit.Thing("a", aliased), kit.Thing("b", aliased)],
        lambda: [kit.Thing("a", aliased), kit.Thing("old")],
        lambda: [kit.Thing("old"), kit.Thing("a", aliased)],
    ):
        for run in (stack.preview, stack.up):
            outcome = run(program)
            assert not outcome.ok and "alias" in outcome.errors[0] and "::old" in outcome.errors[0]
        assert list(stack.cloud.objects) == ["old-a"]
        stack.up(lambda: kit.Thing("old", ResourceOptions(aliases=[Alias(name="a"), Alias(name="b")])))


def test_an_alias_that_is_not_a_urn_is_an_error(stack: Any, kit: Any) -> None:
    outcome = stack.up(lambda: kit.Thing("a", ResourceOptions(aliases=["old"])))

    assert not outcome.ok and "'old' is not a valid URN" in outcome.errors[0]


def test_an_interrupted_create_under_the_old_name_is_finished_under_that_name(stack: Any, kit: Any) -> None:
    stack.cloud.after["create old"] = Killed()
    with pytest.raises(Killed):
        stack.up(lambda: kit.Thing("old", size=1))
    program = lambda: kit.Thing("new", ResourceOptions(aliases=[Alias(name="old")]), size=1)  # noqa: E731

    assert stack.up(program).ok
    assert stack.cloud.objects == {"old-a": {"size": 1}} and stack.resources()["new"].id == "old-a"
    assert stack.up(program).counts == {"same": 2}


def test_a_resource_deleted_early_under_its_old_name_is_recreated_under_its_new_one(stack: Any, kit: Any) -> None:
    def program(kind: str, name: str, *aliases: Alias) -> Any:
        def run() -> None:
            first = kit.Thing("first", ResourceOptions(delete_before_replace=True), kind=kind)
            kit.Thing(name, ResourceOptions(aliases=list(aliases)), kind=first.address)

        return run

    stack.up(program("a", "old"))
    outcome = stack.up(program("b", "new", Alias(name="old")))

    assert outcome.ok and outcome.counts == {"replace": 2, "same": 1}
    assert set(stack.cloud.objects) == {"first-b", "new-address of first-b"}
    assert stack.up(program("b", "new", Alias(name="old"))).counts == {"same": 3}


def test_a_renaming_killed_at_any_journal_entry_loses_and_creates_nothing(
    stack: Any, kit: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(box: str, *aliases: Alias) -> Any:
        def run() -> None:
            inner = Box(kit, box, opts=ResourceOptions(aliases=list(aliases))).inner
            kit.Thing("user", net=inner.address)

        return run

    append, renamed = Journal.append, program("new", Alias(name="old"))
    for survivors in range(100):
        folder = tmp_path / str(survivors)
        folder.mkdir()
        fresh = type(stack)(folder)
        fresh.up(program("old"))
        before, written = dict(fresh.cloud.objects), 0

        def killing(self: Journal, entry: Any, survivors: int = survivors) -> None:
            nonlocal written
            if written == survivors:
                raise Killed
            written += 1
            append(self, entry)

        monkeypatch.setattr(Journal, "append", killing)
        try:
            fresh.up(renamed)
        except Killed:
            pass  # The next up continues from there.
        else:
            assert survivors == 3, "which state it continues; component and parts renamed; who refers to them follows"
            break
        monkeypatch.setattr(Journal, "append", append)
        fresh.cloud.calls.clear()
        assert fresh.up(renamed).ok
        assert fresh.cloud.objects == before and fresh.cloud.asked("create", "update", "delete") == []
        assert not [u for u in urns(fresh) if "old" in u]
    else:
        raise AssertionError("the run never came to its end")


def test_a_destroy_with_the_program_recognises_renamed_resources(stack: Any, kit: Any) -> None:
    stack.up(lambda: Box(kit, "old"))

    outcome = stack.destroy(lambda: Box(kit, "new", opts=ResourceOptions(aliases=[Alias(name="old")])))

    assert outcome.ok and "delete new-inner" in outcome.done
    assert stack.cloud.objects == {} and stack.open().store.snapshot.resources == {}


# For each of up to six resources: which earlier one is its parent, whether it is a component, whether its name begins
# with its parent's, and whether it then gets another name or type.
node = st.tuples(st.integers(0, 5), st.booleans(), st.booleans(), st.booleans(), st.booleans())


@tried(0.15)
@given(nodes=st.lists(node, min_size=1, max_size=6))
def test_renaming_any_resource_of_a_tree_creates_and_deletes_nothing(stack: Any, kit: Any, nodes: list[Any]) -> None:
    def program(*, changed: bool) -> Any:
        def run() -> None:
            made: list[Any] = []
            names: list[tuple[str, str]] = []
            for index, (above, component, prefixed, renamed, retyped) in enumerate(nodes):
                parent = made[above] if above < index else None
                # A name that begins with its parent's follows that by itself.
                before, now = (f"{n}-{index}" for n in names[above]) if parent and prefixed else (f"n{index}",) * 2
                now = f"other{index}" if renamed else now
                names.append((before, now))
                old = Alias(name=before, type_="test:index:Old") if component and retyped else Alias(name=before)
                aliases = [old] if changed and (renamed or (component and retyped)) else []
                opts = ResourceOptions(parent=parent, aliases=aliases)
                name = now if changed else before
                if component:
                    kind = "test:index:New" if changed and retyped else "test:index:Old"
                    made.append(pulumi.ComponentResource(kind, name, None, opts))
                else:
                    made.append(kit.Thing(name, opts, size=1))

        return run

    with tempfile.TemporaryDirectory() as folder:
        fresh = type(stack)(Path(folder))
        fresh.up(program(changed=False))
        count = len(urns(fresh))
        unchanged(fresh, program(changed=True))
        assert len(urns(fresh)) == count


# The pure parts.


def goal(name: str, parent: str = "", *aliases: GoalAlias) -> Goal:
    return Goal(type="t:m:T", name=name, custom=True, parent=parent, inputs={}, aliases=aliases)


def test_an_alias_takes_its_unset_parts_from_the_resource() -> None:
    parent = f"{URN}t:m:P::p"
    own = f"{URN}t:m:P$t:m:T::x"

    def found(*aliases: GoalAlias) -> list[str]:
        return [u.removeprefix("urn:pulumi:") for u in former_urns(goal("x", parent, *aliases), own, "dev", "test", {})]

    assert found(GoalAlias(name="y")) == ["dev::test::t:m:P$t:m:T::y"]
    assert found(GoalAlias(type="t:m:U")) == ["dev::test::t:m:P$t:m:U::x"]
    assert found(GoalAlias(no_parent=True)) == ["dev::test::t:m:T::x"]
    assert found(GoalAlias(no_parent=True, stack="s", project="p")) == ["s::p::t:m:T::x"]
    assert found(GoalAlias(parent=f"{URN}pulumi:pulumi:Stack::test-dev")) == ["dev::test::t:m:T::x"]
    assert found(GoalAlias(parent="urn:pulumi:s::p::t:m:Q::q")) == ["s::p::t:m:Q$t:m:T::x"]
    assert found(GoalAlias(name="x")) == []


def test_a_childs_former_urns_combine_its_parents_former_urns_with_its_own_aliases() -> None:
    parent = f"{URN}t:m:P::new"
    own = f"{URN}t:m:P$t:m:T::new-x"

    found = former_urns(goal("new-x", parent, GoalAlias(name="y")), own, "dev", "test", {parent: (f"{URN}t:m:O::old",)})

    assert found == [f"{URN}t:m:P$t:m:T::y", f"{URN}t:m:O$t:m:T::old-x", f"{URN}t:m:O$t:m:T::y"]


def test_a_renaming_changes_only_references() -> None:
    user = ResourceState("u", "t", custom=True, dependencies=("a", "b"), provider="p::1", replace_with=("a",))

    assert following(user, "a", "z").dependencies == ("b", "z") and following(user, "a", "z").replace_with == ("z",)
    assert following(user, "p", "q").provider == "q::1"
    assert following(user, "u", "z") is user
