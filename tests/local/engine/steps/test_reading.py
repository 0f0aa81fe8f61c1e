"""`get`: an external object is read in each run, and never changed or deleted."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi import ResourceOptions

pytestmark = pytest.mark.engine


def program(kit: Any, id: Any = "theirs") -> Any:
    def run() -> None:
        found = kit.Thing("found", ResourceOptions(id=id))
        kit.Thing("user", net=found.address)
        pulumi.export("size", found.size)

    return run


def test_an_external_object_is_read_in_a_preview_too_and_destroy_forgets_it(stack: Any, kit: Any) -> None:
    stack.cloud.objects["theirs"] = {"size": 3}

    preview = stack.preview(program(kit))
    assert preview.ok and preview.counts == {"create": 2, "read": 1}
    assert preview.summary.new_outputs == {"size": 3}
    assert stack.up(program(kit)).counts == preview.counts
    found = stack.resources()["found"]
    assert found.external and found.id == "theirs" and found.outputs["address"] == "address of theirs"
    assert stack.cloud.objects["user-a"] == {"net": "address of theirs"}

    assert stack.up(program(kit)).counts == {"same": 2, "read": 1}
    assert stack.refresh().counts == {"same": 3}
    destroyed = stack.destroy()
    assert destroyed.ok and "discard found" in destroyed.done
    assert stack.cloud.asked("delete") == ["delete user"] and list(stack.cloud.objects) == ["theirs"]


def test_the_next_run_sees_changes_of_an_external_object(stack: Any, kit: Any) -> None:
    stack.cloud.objects["theirs"] = {"size": 3}
    stack.up(program(kit))
    stack.cloud.objects["theirs"] = {"size": 4}

    assert stack.preview(program(kit)).summary.new_outputs == {"size": 4}
    assert stack.refresh().counts == {"same": 2, "update": 1}
    stack.up(program(kit))
    assert stack.resources()["test-dev"].outputs == {"size": 4}


def test_reading_a_missing_object_is_an_error(stack: Any, kit: Any) -> None:
    for run in (stack.preview, stack.up):
        outcome = run(program(kit))
        assert not outcome.ok and outcome.errors == ["resource 'theirs' does not exist"]


def test_reading_an_unknown_id_gives_unknown_outputs(stack: Any, kit: Any) -> None:
    def chained() -> None:
        made = kit.Thing("made")
        found = kit.Thing("found", ResourceOptions(id=made.id))
        pulumi.export("address", found.address)

    preview = stack.preview(chained)
    assert preview.ok and preview.summary.new_outputs == {"address": kit.UNKNOWN}
    assert stack.up(chained).ok
    assert stack.resources()["test-dev"].outputs == {"address": "address of made-a"}


def test_an_external_object_removed_from_the_program_is_forgotten(stack: Any, kit: Any) -> None:
    stack.cloud.objects["theirs"] = {"size": 3}
    stack.up(lambda: kit.Thing("found", ResourceOptions(id="theirs")))

    outcome = stack.up(lambda: None)

    assert outcome.ok and outcome.counts == {"discard": 1, "same": 1}
    assert "found" not in stack.resources() and list(stack.cloud.objects) == ["theirs"]


def test_reading_our_own_object_releases_it(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("found", size=1))

    assert stack.up(lambda: kit.Thing("found", ResourceOptions(id="found-a"))).counts == {"same": 1, "read": 1}
    assert stack.destroy().ok and list(stack.cloud.objects) == ["found-a"]


def test_reading_another_object_replaces_our_own(stack: Any, kit: Any) -> None:
    stack.cloud.objects["theirs"] = {"size": 3}
    stack.up(lambda: kit.Thing("found", size=1))

    outcome = stack.up(lambda: kit.Thing("found", ResourceOptions(id="theirs")))

    assert outcome.ok and outcome.counts == {"replace": 1, "same": 1} and "read-replacement found" in outcome.done
    assert list(stack.cloud.objects) == ["theirs"]
    assert stack.up(lambda: kit.Thing("found", ResourceOptions(id="theirs"))).counts == {"same": 1, "read": 1}


def test_an_external_resource_is_created_when_the_program_declares_it(stack: Any, kit: Any) -> None:
    stack.cloud.objects["theirs"] = {"size": 3}
    stack.up(lambda: kit.Thing("found", ResourceOptions(id="theirs")))

    outcome = stack.up(lambda: kit.Thing("found", size=1))

    assert outcome.ok and outcome.counts == {"replace": 1, "same": 1}
    assert set(stack.cloud.objects) == {"theirs", "found-a"} and not stack.resources()["found"].external
    assert stack.up(lambda: kit.Thing("found", size=1)).counts == {"same": 2}


def test_a_destroy_with_the_program_does_not_need_external_objects(stack: Any, kit: Any) -> None:
    stack.cloud.objects["theirs"] = {"size": 3}
    stack.up(program(kit))
    stack.cloud.objects.pop("theirs")

    def more() -> None:
        program(kit)()
        kit.Thing("another", ResourceOptions(id="nowhere"))

    outcome = stack.destroy(more)
    assert outcome.ok, outcome.errors
    assert stack.cloud.objects == {} and stack.open().store.snapshot.resources == {}
