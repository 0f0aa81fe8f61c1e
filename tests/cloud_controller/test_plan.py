"""A plan reads well to people and to programs."""

from __future__ import annotations

import pytest

from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

CREATE = Action(ActionKind.CREATE, "route/10.1.0.0/24", "lead to a", (FieldChange("next_hop", None, "i-1"),))
IGNORE = Action(ActionKind.IGNORE, "route/10.2.0.0/24", "stays", reason="foreign")


def test_an_action_is_one_line_with_its_symbol_target_and_reason() -> None:
    assert str(CREATE) == "+  route/10.1.0.0/24: lead to a"
    assert str(IGNORE) == "   route/10.2.0.0/24: stays (foreign)"


def test_an_assumed_action_is_marked_in_text_and_json() -> None:
    assumed = Action(ActionKind.UPDATE, "node/a", "initialise", assumed=True)

    assert str(assumed) == "~  node/a: initialise [assumed]"
    assert assumed.to_json() == {"kind": "update", "target": "node/a", "summary": "initialise", "assumed": True}


def test_an_actions_json_omits_unset_fields_and_the_operation() -> None:
    action = Action(ActionKind.DELETE, "node/a", "delete", operation=object())

    assert action.to_json() == {"kind": "delete", "target": "node/a", "summary": "delete"}


def test_an_action_is_read_back_from_its_json() -> None:
    held = Action(ActionKind.DELETE, "route/10.3.0.0/24", "delete", reason="its node is gone", held="abc")

    assert [Action.from_json(action.to_json()) for action in (CREATE, IGNORE, held)] == [CREATE, IGNORE, held]


def test_an_actions_json_has_each_changed_field_before_and_after() -> None:
    assert CREATE.to_json()["changes"] == [{"field": "next_hop", "before": None, "after": "i-1"}]
    assert str(CREATE.changes[0]) == "next_hop: (none) -> i-1"


def test_actions_are_equal_whatever_their_operations() -> None:
    assert Action(ActionKind.DELETE, "node/a", "delete", operation=1) == Action(ActionKind.DELETE, "node/a", "delete")


def test_an_ignored_difference_needs_a_reason() -> None:
    with pytest.raises(ValueError, match=r"node/a.*requires a reason"):
        Action(ActionKind.IGNORE, "node/a", "stays")


def test_a_plan_distinguishes_changes_from_ignored_actions() -> None:
    plan = Plan.of([CREATE]) + Plan.of([IGNORE])

    assert plan.changes == (CREATE,)
    assert plan.counts == {ActionKind.CREATE: 1, ActionKind.IGNORE: 1}
    assert [entry["target"] for entry in plan.to_json()] == ["route/10.1.0.0/24", "route/10.2.0.0/24"]


def test_an_empty_plan_says_that_there_is_nothing_to_do() -> None:
    assert str(Plan()) == "nothing to do"
    assert len(Plan()) == 0
