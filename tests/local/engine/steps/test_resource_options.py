"""Resource options for replacements, ignored changes and timeouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pulumi import CustomTimeouts, ResourceOptions

from local.plugins.values import Secret

pytestmark = pytest.mark.engine


def replaced(stack: Any, program: Callable[[], object]) -> Any:
    """The preview's predicted steps."""
    stack.cloud.calls.clear()
    preview = stack.preview(program)
    assert preview.ok, preview.errors
    outcome = stack.up(program)
    assert outcome.ok, outcome.errors
    assert outcome.counts == preview.counts
    assert set(stack.up(program).counts) == {"same"}
    return outcome


# replace_with.


def following(kit: Any, kind: str, **options: Any) -> Callable[[], None]:
    def run() -> None:
        base = kit.Thing("base", ResourceOptions(**options), kind=kind)
        kit.Thing("follower", ResourceOptions(replace_with=[base]), size=1)

    return run


def test_a_resource_is_replaced_with_another(stack: Any, kit: Any) -> None:
    stack.up(following(kit, "a"))
    assert [u.rpartition("::")[2] for u in stack.resources()["follower"].replace_with] == ["base"]

    outcome = replaced(stack, following(kit, "b"))

    assert outcome.counts == {"replace": 2, "same": 1}
    assert {"create follower", "delete follower"} <= set(stack.cloud.asked("create", "delete"))


def test_a_resource_replaced_with_another_is_deleted_before_it(stack: Any, kit: Any) -> None:
    stack.up(following(kit, "a", delete_before_replace=True))

    assert replaced(stack, following(kit, "b", delete_before_replace=True)).counts == {"replace": 2, "same": 1}
    changes = stack.cloud.asked("create", "delete")
    assert changes == ["delete follower", "delete base", "create base", "create follower"]


def test_replace_with_ignores_an_update_of_the_other_resource(stack: Any, kit: Any) -> None:
    def program(size: int) -> Callable[[], None]:
        return lambda: kit.Thing("follower", ResourceOptions(replace_with=[kit.Thing("base", size=size)]))

    stack.up(program(1))
    assert stack.up(program(2)).counts == {"update": 1, "same": 2}


# replacement_trigger.


def triggered(kit: Any, trigger: Any) -> Callable[[], None]:
    return lambda: kit.Thing("thing", ResourceOptions(replacement_trigger=trigger), size=1)


@pytest.mark.parametrize(("first", "second"), [("a", "b"), (1, 2), (["x"], ["x", "y"]), ({"k": 1}, {"k": 2})])
def test_a_changed_trigger_replaces_the_resource(stack: Any, kit: Any, first: Any, second: Any) -> None:
    stack.up(triggered(kit, first))
    assert stack.resources()["thing"].replacement_trigger == first

    assert replaced(stack, triggered(kit, second)).counts == {"replace": 1, "same": 1}
    assert stack.resources()["thing"].replacement_trigger == second


def test_an_added_or_removed_trigger_replaces_nothing(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", size=1))

    assert stack.up(triggered(kit, "a")).counts == {"same": 2}
    assert stack.up(lambda: kit.Thing("thing", size=1)).counts == {"same": 2}
    assert stack.up(triggered(kit, "b")).counts == {"same": 2}


def test_a_secret_trigger_stays_secret_and_is_compared_by_what_it_hides(stack: Any, kit: Any) -> None:
    def program(text: str) -> Callable[[], None]:
        return lambda: triggered(kit, pulumi.Output.secret(text))()

    stack.up(program("hunter2"))
    assert stack.resources()["thing"].replacement_trigger == Secret("hunter2") and "hunter2" not in stack.files()
    outcome = stack.up(program("hunter3"))
    assert outcome.counts == {"replace": 1, "same": 1} and "hunter" not in repr(outcome.events)
    assert stack.up(triggered(kit, "hunter3")).counts == {"same": 2}


def test_a_preview_predicts_a_replacement_for_an_unknown_trigger(stack: Any, kit: Any) -> None:
    def program(size: int) -> Callable[[], None]:
        return lambda: triggered(kit, kit.Thing("base", size=size).size)()

    stack.up(program(1))
    assert stack.up(program(2)).counts == {"update": 1, "replace": 1, "same": 1}
    assert stack.preview(program(2)).counts == {"same": 3}


# replace_on_changes, delete_before_replace, retain_on_delete.


@pytest.mark.parametrize("pattern", ["*", "spec", "spec.ports", "spec.ports[1].port", "spec.ports[*].port"])
def test_replace_on_changes_matches_nested_paths(stack: Any, kit: Any, pattern: str) -> None:
    opts = ResourceOptions(replace_on_changes=[pattern], delete_before_replace=True)

    def program(port: int) -> Callable[[], None]:
        return lambda: kit.Thing("lb", opts, spec={"ports": [{"port": 1}, {"port": port}]})

    stack.cloud.compares = False
    stack.up(program(80))
    assert replaced(stack, program(81)).counts == {"replace": 1, "same": 1}


def test_replace_on_changes_compares_inputs_not_outputs(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(replace_on_changes=["*"])
    stack.up(lambda: kit.Thing("lb", opts, size=1))
    stack.cloud.objects["lb-a"]["seen"] = 7

    program = lambda: kit.Thing("lb", opts, size=1)  # noqa: E731
    assert stack.up(program).counts == {"same": 2}


def test_a_replaced_resource_with_retain_on_delete_is_kept(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(retain_on_delete=True)
    stack.up(lambda: kit.Thing("address", opts, kind="a"))

    assert replaced(stack, lambda: kit.Thing("address", opts, kind="b")).counts == {"replace": 1, "same": 1}
    assert stack.cloud.asked("delete") == [] and set(stack.cloud.objects) == {"address-a", "address-b"}
    assert stack.resources()["address"].id == "address-b"


def test_retain_on_delete_also_applies_to_delete_before_replace(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(retain_on_delete=True, delete_before_replace=True)
    stack.up(lambda: kit.Thing("address", opts, kind="a"))

    replaced(stack, lambda: kit.Thing("address", opts, kind="b"))
    assert stack.cloud.asked("delete") == [] and set(stack.cloud.objects) == {"address-a", "address-b"}


# ignore_changes.


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("*", {"size": 1, "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}),
        ("ports", {"size": 9, "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}),
        ("ports[1]", {"size": 9, "ports": [{"port": 8, "name": "a"}, {"port": 2, "name": "b"}]}),
        ("ports[*].port", {"size": 9, "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "z"}]}),
    ],
)
def test_ignored_changes_may_be_all_elements_or_parts_of_them(stack: Any, kit: Any, pattern: str, kept: Any) -> None:
    def program(size: int, *ports: dict[str, Any]) -> Callable[[], None]:
        opts = ResourceOptions(ignore_changes=[pattern])
        return lambda: kit.Thing("pool", opts, size=size, ports=list(ports))

    stack.up(program(1, {"port": 1, "name": "a"}, {"port": 2, "name": "b"}))
    assert stack.up(program(9, {"port": 8, "name": "a"}, {"port": 9, "name": "z"})).ok
    assert stack.cloud.objects["pool-a"] == kept


@pytest.mark.parametrize("pattern", ["ports[1].port", "ports[1]", "spec.size"])
def test_a_change_that_cannot_be_ignored_is_an_error(stack: Any, kit: Any, pattern: str) -> None:
    opts = ResourceOptions(ignore_changes=[pattern])
    stack.up(lambda: kit.Thing("pool", opts, ports=[{"port": 1}, {"port": 2}], spec={"size": 1}))

    outcome = stack.up(lambda: kit.Thing("pool", opts, ports=[{"port": 1}]))

    assert not outcome.ok and f"cannot ignore changes of {pattern}" in outcome.errors[0]
    assert stack.cloud.asked("update") == []


@pytest.mark.parametrize("as_a_whole", [True, False], ids=["it was a secret", "it becomes one"])
def test_an_ignored_part_of_a_secret_stays_secret(stack: Any, kit: Any, as_a_whole: bool) -> None:
    def program(as_a_whole: bool, size: int) -> Callable[[], None]:
        def run() -> None:
            secret = pulumi.Output.secret
            data = (
                secret({"token": "hunter2", "size": size}) if as_a_whole else {"token": secret("hunter2"), "size": size}
            )
            kit.Thing("pool", ResourceOptions(ignore_changes=["data.token"]), data=data)

        return run

    stack.up(program(as_a_whole, 1))

    assert stack.up(program(not as_a_whole, 2)).ok
    assert stack.cloud.objects["pool-a"] == {"data": {"token": "hunter2", "size": 2}}
    assert "hunter2" not in stack.files()


def test_a_replacement_uses_the_programs_value_of_ignored_properties(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(ignore_changes=["size"])
    stack.up(lambda: kit.Thing("pool", opts, size=1, kind="a"))

    replaced(stack, lambda: kit.Thing("pool", opts, size=2, kind="b"))
    assert stack.cloud.objects == {"pool-b": {"size": 2, "kind": "b"}}


# custom_timeouts, hide_diffs.


def test_each_step_has_its_own_timeout_and_a_deletion_the_old_one(stack: Any, kit: Any) -> None:
    opts = ResourceOptions(custom_timeouts=CustomTimeouts(create="5m", update="90s", delete="1h"))
    stack.up(lambda: kit.Thing("slow", opts, size=1))
    stack.up(lambda: kit.Thing("slow", opts, size=2))
    stack.up(lambda: None)

    limits = stack.cloud.timeouts
    assert (limits["create slow"], limits["update slow"], limits["delete slow"]) == (300, 90, 3600)


def test_hidden_differences_are_stored_in_the_state(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", ResourceOptions(hide_diffs=["blob", "tags[0].k"]), blob="x"))

    exported = stack.open().store.export()["deployment"]["resources"]
    assert next(r for r in exported if r["urn"].endswith("::thing"))["hideDiff"] == ["blob", "tags[0].k"]


# As in a state that the CLI exported.


def mark(stack: Any, name: str, **fields: Any) -> None:
    path = stack.stack_dir / "state.json"
    document = json.loads(path.read_text())
    resource = next(r for r in document["deployment"]["resources"] if r["urn"].endswith(f"::{name}"))
    resource.update(fields)
    path.write_text(json.dumps(document))


def test_a_tainted_resource_is_replaced_once(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", size=1))
    mark(stack, "thing", taint=True)

    assert replaced(stack, lambda: kit.Thing("thing", size=1)).counts == {"replace": 1, "same": 1}
    assert stack.cloud.asked("create", "delete") == ["delete thing", "create thing"]


def test_a_resource_already_deleted_for_replacement_is_only_created(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", size=1))
    mark(stack, "thing", pendingReplacement=True)
    del stack.cloud.objects["thing-a"]

    assert stack.refresh().counts == {"same": 2}
    assert replaced(stack, lambda: kit.Thing("thing", size=1)).counts == {"replace": 1, "same": 1}
    assert stack.cloud.asked("create", "delete") == ["create thing"]


def test_a_resource_already_deleted_for_replacement_and_undeclared_is_forgotten(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", size=1))
    mark(stack, "thing", pendingReplacement=True)

    assert stack.destroy().ok
    assert stack.cloud.asked("delete") == [] and stack.open().store.snapshot.resources == {}
