"""`import_`: an existing object is imported by its id, if it matches the program."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi import ResourceOptions

from local.engine.stack.journal import Journal
from tests.local.engine.killable_stack import Killed

pytestmark = pytest.mark.engine


def importing(kit: Any, id: str, **properties: Any) -> Any:
    return lambda: kit.Thing("thing", ResourceOptions(import_=id), **properties)


def test_an_imported_object_becomes_an_ordinary_resource(stack: Any, kit: Any) -> None:
    stack.cloud.objects["there"] = {"size": 3}
    program = importing(kit, "there", size=3)

    preview = stack.preview(program)
    assert preview.ok and preview.counts == {"create": 1, "import": 1}
    assert "thing" not in stack.resources()
    outcome = stack.up(program)

    assert outcome.ok and outcome.counts == preview.counts and outcome.warnings == []
    assert stack.cloud.asked("create", "update", "delete") == []
    thing = stack.resources()["thing"]
    assert (thing.id, thing.import_id) == ("there", "there")
    assert thing.outputs == {"size": 3, "address": "address of there"}
    assert stack.up(program).counts == {"same": 2}
    assert stack.up(lambda: kit.Thing("thing", size=3)).counts == {"same": 2}
    assert stack.up(lambda: kit.Thing("thing", size=4)).counts == {"same": 1, "update": 1}
    assert stack.resources()["thing"].import_id == "there"
    assert stack.destroy().ok and stack.cloud.objects == {}


def test_an_object_that_differs_from_the_program_is_not_imported(stack: Any, kit: Any) -> None:
    stack.cloud.objects["there"] = {"size": 3, "tag": "x"}
    program = importing(kit, "there", size=4)

    preview = stack.preview(program)
    assert preview.ok and preview.counts["import"] == 1
    assert preview.warnings == [
        "inputs to import do not match the existing resource: size, tag; importing this resource will fail"
    ]
    outcome = stack.up(program)
    assert not outcome.ok
    assert outcome.errors[0] == "inputs to import do not match the existing resource: size, tag"
    assert "thing" not in stack.resources() and stack.cloud.objects == {"there": {"size": 3, "tag": "x"}}


def test_an_import_keeps_ignored_differences(stack: Any, kit: Any) -> None:
    stack.cloud.objects["there"] = {"size": 3, "tag": "x"}
    opts = ResourceOptions(import_="there", ignore_changes=["size", "tag"])

    assert stack.up(lambda: kit.Thing("thing", opts, size=4)).ok
    assert stack.resources()["thing"].inputs == {"size": 3, "tag": "x"}


def test_importing_a_missing_object_is_an_error(stack: Any, kit: Any) -> None:
    for run in (stack.preview, stack.up):
        outcome = run(importing(kit, "nowhere"))
        assert not outcome.ok and outcome.errors == ["resource 'nowhere' does not exist"]
    assert stack.cloud.asked("create") == []


def test_an_import_replaces_the_managed_object_with_another(stack: Any, kit: Any) -> None:
    stack.up(lambda: kit.Thing("thing", size=1))
    stack.cloud.objects["there"] = {"size": 3}
    stack.cloud.calls.clear()
    program = importing(kit, "there", size=3)

    assert stack.preview(program).counts == {"replace": 1, "same": 1}
    outcome = stack.up(program)

    assert outcome.ok and outcome.counts == {"replace": 1, "same": 1}
    assert "import-replacement thing" in outcome.done
    assert stack.cloud.objects == {"there": {"size": 3}} and stack.cloud.asked("create") == []
    assert stack.up(program).counts == {"same": 2}


def test_a_resource_with_the_import_option_is_not_replaced(stack: Any, kit: Any) -> None:
    stack.cloud.objects["there"] = {"kind": "a"}
    stack.up(importing(kit, "there", kind="a"))
    program = importing(kit, "there", kind="b")

    preview = stack.preview(program)
    assert preview.ok and "import_" in preview.warnings[0]
    outcome = stack.up(program)
    assert not outcome.ok and "import_" in outcome.errors[0]
    assert stack.cloud.objects == {"there": {"kind": "a"}}
    assert stack.up(lambda: kit.Thing("thing", kind="b")).counts == {"replace": 1, "same": 1}
    assert stack.resources()["thing"].import_id == "" and list(stack.cloud.objects) == ["thing-b"]


def test_importing_a_provider_is_an_error(stack: Any) -> None:
    outcome = stack.preview(lambda: pulumi.ProviderResource("memory", "cloud", {}, ResourceOptions(import_="there")))

    assert not outcome.ok and "a provider cannot be imported" in outcome.errors[0]


@pytest.mark.parametrize("survivors", range(5))
def test_an_import_killed_between_two_journal_entries_is_done_by_the_next_up(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    stack.up(lambda: kit.Thing("thing", size=1))
    stack.cloud.objects["there"] = {"size": 3}
    append, written = Journal.append, 0

    def killing(self: Journal, entry: Any) -> None:
        nonlocal written
        if written == survivors:
            raise Killed
        written += 1
        append(self, entry)

    monkeypatch.setattr(Journal, "append", killing)
    try:
        # The state that it continues, the import itself, then begin and end of the old one's deletion.
        assert stack.up(importing(kit, "there", size=3)).ok and survivors >= 4
    except Killed:
        assert survivors < 4
    monkeypatch.setattr(Journal, "append", append)

    assert stack.up(importing(kit, "there", size=3)).ok
    assert stack.cloud.objects == {"there": {"size": 3}} and stack.cloud.asked("create") == ["create thing"]
    assert stack.up(importing(kit, "there", size=3)).counts == {"same": 2}
