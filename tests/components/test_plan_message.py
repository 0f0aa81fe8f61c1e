"""What the plan of a `CloudController` is as a message: all of it, within reason, whatever is not known yet."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
from pulumi.output import UNKNOWN

from cloud_controller.plan import Action, ActionKind, FieldChange
from components.plan_message import LIMIT, plan_lines

ROUTE = Action(ActionKind.CREATE, "route/10.20.1.0/24", "route pods of a to its machine")
NODE = Action(ActionKind.UPDATE, "node/a", "set its zone", (FieldChange("zone", None, "zone-a"),))
LEFT = Action(ActionKind.IGNORE, "route/10.9.0.0/24", "stays", reason="foreign")


def lines(*actions: Action, planning: bool = True) -> list[str]:
    return plan_lines([action.to_json() for action in actions], planning=planning)


def test_a_plan_is_counted_and_then_listed_with_every_changed_field() -> None:
    assert lines(ROUTE, NODE, LEFT) == [
        "plan: 1 to create, 1 to update",
        "  +  route/10.20.1.0/24: route pods of a to its machine",
        "  ~  node/a: set its zone",
        "       zone: (none) -> zone-a",
        "     route/10.9.0.0/24: stays (foreign)",
    ]


def test_a_plan_without_pending_actions_says_nothing_to_do() -> None:
    assert lines(LEFT)[0] == "plan: nothing to do"


@pytest.mark.parametrize("plan", [None, []])
def test_without_a_plan_there_is_no_message(plan: Any) -> None:
    assert plan_lines(plan, planning=True) == []


def test_assumed_actions_are_marked_in_a_preview_and_not_in_the_update() -> None:
    assumed = Action(ActionKind.UPDATE, "node/a", "initialise", assumed=True)

    assert lines(assumed)[1] == "  ~  node/a: initialise [assumed]"
    assert lines(assumed, planning=False)[1] == "  ~  node/a: initialise"


def test_an_update_lists_its_actions_without_the_fields_that_its_preview_has_shown() -> None:
    assert lines(NODE, planning=False) == ["plan: 1 to update", "  ~  node/a: set its zone"]


def test_a_long_plan_loses_its_fields_first_and_counts_the_lines_left_out() -> None:
    shown = lines(*[NODE] * (LIMIT // 2 + 1))

    assert shown[1:-1] == ["  ~  node/a: set its zone"] * (LIMIT // 2 + 1)
    assert shown[-1] == f"  … {LIMIT // 2 + 1} more lines; `--json` has the whole plan"


def test_a_very_long_plan_lists_its_first_actions() -> None:
    shown = lines(*[ROUTE] * (LIMIT + 7))

    assert shown[0] == f"plan: {LIMIT + 7} to create"
    assert len(shown) == 1 + LIMIT + 1
    assert shown[-1] == "  … 7 more lines; `--json` has the whole plan"


def test_an_unknown_plan_is_shown_as_unknown() -> None:
    assert plan_lines(UNKNOWN, planning=True) == ["plan: [unknown]"]


def test_unknown_and_secret_values_in_a_plan_have_placeholders() -> None:
    secret = object.__new__(pulumi.Output)  # as the SDK hands secrets to hooks; a whole one needs an event loop
    entry = {
        "kind": "update",
        "target": "node/a",
        "summary": UNKNOWN,
        "changes": [{"field": "token", "before": UNKNOWN, "after": secret}],
    }

    assert plan_lines([entry], planning=True)[1:] == ["  ~  node/a: [unknown]", "       token: [unknown] -> [secret]"]
