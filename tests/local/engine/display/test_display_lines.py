"""The output for people: lines for steps, differences, the plan, policies; never secrets."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from local.engine.display.ci import PlainLog
from local.engine.display.lines import Lines, Wanted
from local.engine.display.text import Output
from local.engine.display.values import diff_lines, plan_lines, property_lines
from local.engine.events import (
    UNTARGETED,
    Diagnostic,
    PolicyEvent,
    Prelude,
    StepDone,
    StepStarted,
    without_texts,
)
from local.engine.policies.host import Finding
from local.engine.steps.planner import Op
from local.plugins.differences import differences
from local.plugins.values import UNKNOWN, Secret
from tests.local.engine.shown_events import STACK, creating, resource, step, summary


def text(*events: Any, colour: bool = False, diff: bool = False) -> str:
    out = io.StringIO()
    display = Lines(Output(out), PlainLog(colour=colour), Wanted(diff=diff))
    for event in events:
        display(event)
    display.close()
    return out.getvalue()


def test_a_preview_shows_each_step_with_its_differences() -> None:
    old = resource("web", inputs={"spec": {"class": "a", "gone": 1}, "token": Secret("hunter2")})
    new = resource("web", inputs={"spec": {"class": "b", "more": UNKNOWN}, "token": Secret("hunter3")})
    shown = text(Prelude("preview", "dev", {}), StepDone(step(Op.UPDATE, old, new), True))
    assert shown.splitlines() == [
        "Previewing update (dev):",
        " ~  cloud:m:Thing web update",
        '      ~ spec.class: "a" => "b"',
        "      - spec.gone: 1",
        "      + spec.more: [unknown]",
        "      ~ token: [secret] => [secret]",
    ]


def test_an_up_shows_the_start_and_duration_of_each_step() -> None:
    web = creating("web")
    shown = text(Prelude("up", "dev", {}), StepStarted(web, False), StepDone(web, False, 1.234))
    assert " +  cloud:m:Thing web creating\n +  cloud:m:Thing web created (1.23s)\n" in shown


def test_a_plan_is_shown_line_by_line_under_an_unchanged_resource() -> None:
    plan = [
        {"kind": "create", "target": "route/10.1.2.0/24", "summary": "to worker-0"},
        {"kind": "ignore", "target": "node/x", "summary": "leave", "reason": "not ours", "assumed": True},
        {
            "kind": "update",
            "target": "node/y",
            "summary": "set",
            "changes": [{"field": "zone", "before": None, "after": "a"}],
        },
    ]
    shown = text(StepDone(step(Op.SAME, resource("c"), resource("c", inputs={"plan": plan})), True))
    assert shown.splitlines()[1:] == [
        "        plan:",
        "          + route/10.1.2.0/24: to worker-0",
        "            node/x: leave (not ours) [assumed]",
        "          ~ node/y: set",
        '                zone: null => "a"',
    ]
    kept = replace(step(Op.SAME, resource("c"), resource("c", inputs={"plan": plan})), note=UNTARGETED)
    assert "plan" not in text(StepDone(kept, True)), "it is of an earlier run"
    assert plan_lines(Secret(plan)) == [] and plan_lines([]) == []


def test_unchanged_resources_are_not_shown() -> None:
    assert text(StepDone(step(Op.SAME, resource("x"), resource("x")), True)) == ""


def test_policies_are_shown_with_level_and_a_rule_that_did_not_run_has_not_passed() -> None:
    def finding(level: Any) -> PolicyEvent:
        return PolicyEvent(Finding("rule", "pack", "1.0", level, "message", resource("web").urn, "About."))

    shown = text(finding("mandatory"), finding("not-evaluated"), summary(policy_packs={"pack": "1.0", "other": ""}))
    assert "pack@v1.0: 1 mandatory, 1 not-evaluated" in shown and "other: passed" in shown
    assert "[mandatory] rule\n            About.\n            cloud:m:Thing web: message\n" in shown


def test_a_rule_is_described_once_however_many_resources_violate_it() -> None:
    findings = [
        PolicyEvent(Finding("rule", "pack", "1.0", "mandatory", message, resource(name).urn, "About."))
        for name, message in [("web", "one\ntwo"), ("echo", "About.")]
    ]
    shown = text(*findings, summary(policy_packs={"pack": "1.0"}))
    expected = """\
        [mandatory] rule
            About.
            cloud:m:Thing web: one
                two
            cloud:m:Thing echo
"""
    assert expected in shown


def test_outputs_show_their_changes_and_no_secret() -> None:
    shown = text(summary(old_outputs={"a": 1, "gone": 2}, new_outputs={"a": 3, "token": Secret("hunter2")}))
    assert "  ~ a    : 1 => 3" in shown and "  - gone : 2" in shown and "  + token: [secret]" in shown
    assert "hunter2" not in shown


def test_the_summary_counts_like_the_cli() -> None:
    counts = {Op.CREATE: 1, Op.REPLACE: 2, Op.SAME: 5, Op.DELETE_REPLACED: 2}
    shown = text(summary(changes=counts))
    assert "Resources:\n    + 1 to create\n    +-2 to replace\n    3 changes. 5 unchanged\n" in shown
    assert "    +-2 replaced" in text(summary(planning=False, changes=counts))


def test_errors_are_repeated_at_the_end_with_all_their_lines() -> None:
    shown = text(Diagnostic("error", "first\nsecond", resource("web").urn), summary(failed=True))
    assert "    error: cloud:m:Thing web: first\n" in shown
    assert "Diagnostics:\n  cloud:m:Thing (web):\n    error: first\n      second\n" in shown


def test_a_problem_that_is_still_visible_is_not_repeated() -> None:
    shown = text(Prelude("up", "dev", {}), Diagnostic("error", "only this", resource("web").urn), summary(failed=True))
    assert shown.count("only this") == 1 and "Diagnostics" not in shown


def test_a_problem_that_later_lines_have_pushed_away_is_repeated() -> None:
    done = StepDone(step(Op.CREATE, None, resource("other")), False, 1.0)
    shown = text(Diagnostic("error", "this", resource("web").urn), done, summary(failed=True))
    assert shown.count("this") == 2


def test_a_preview_shows_its_problems_once_at_the_end() -> None:
    shown = text(Prelude("preview", "dev", {}), Diagnostic("error", "this", resource("web").urn), summary(failed=True))
    assert shown.count("this") == 1 and "Diagnostics:\n  cloud:m:Thing (web):\n    error: this\n" in shown


def test_a_preview_shows_a_resources_message_among_its_diagnostics() -> None:
    message = Diagnostic("info", "plan: 1 to create\n  +  route/x: make it", resource("web").urn)

    shown = text(Prelude("preview", "dev", {}), message, summary())

    assert shown.count("route/x") == 1
    assert "Diagnostics:\n  cloud:m:Thing (web):\n    plan: 1 to create\n        +  route/x: make it\n" in shown


def test_an_update_shows_a_resources_message_at_once() -> None:
    message = Diagnostic("info", "plan: 1 to create\n  +  route/x: make it", resource("web").urn)

    shown = text(Prelude("up", "dev", {}), message)

    assert shown.endswith("      cloud:m:Thing web: plan: 1 to create\n          +  route/x: make it\n")


def test_a_problem_shared_by_many_resources_is_shown_once() -> None:
    problems = [Diagnostic("error", "no answer", resource(name).urn) for name in ("a", "b", "c")]
    shown = text(Prelude("refresh", "dev", {}), *problems, summary(failed=True))
    assert shown.count("no answer") == 2
    assert "  cloud:m:Thing (a):\n  cloud:m:Thing (b):\n  cloud:m:Thing (c):\n    error: no answer\n" in shown


def test_passed_policies_do_not_cause_a_warning_above_the_summary_to_be_repeated() -> None:
    shown = text(Diagnostic("warning", "simulated"), summary(policy_packs={"pack": "1.0"}))

    assert shown.count("simulated") == 1


def test_a_pack_of_a_run_that_failed_has_not_passed() -> None:
    shown = text(summary(policy_packs={"pack": "1.0"}, failed=True))
    assert "pack@v1.0: incomplete, as the run failed" in shown and "passed" not in shown


def test_a_failed_run_shows_no_unchanged_outputs() -> None:
    same: dict[str, Any] = {"old_outputs": {"a": 1}, "new_outputs": {"a": 1}}
    assert "Outputs" not in text(summary(failed=True, **same)) and "Outputs" in text(summary(**same))


def test_drift_is_shown_like_a_plan() -> None:
    drift = [{"kind": "create", "target": "route/10.1.2.0/24", "summary": "to worker-0"}]
    old, new = resource("c", outputs={"drift": []}), resource("c", outputs={"drift": drift})
    reading = step(Op.REFRESH, old, old)
    found = replace(step(Op.UPDATE, old, new), detailed=differences(old.outputs, new.outputs))
    shown = text(Prelude("refresh", "dev", {}), StepStarted(reading, False), StepDone(found, False))
    assert shown.splitlines()[1:] == [
        " ~  cloud:m:Thing c changed",
        "        drift:",
        "          + route/10.1.2.0/24: to worker-0",
    ]


def test_colours_are_used_only_on_request() -> None:
    created = StepDone(creating("web"), True)
    assert "\x1b[" not in text(created) and "\x1b[32m" in text(created, colour=True)


def test_properties_of_what_is_created_are_shown_on_demand() -> None:
    created = StepDone(
        step(Op.CREATE, None, resource("w", inputs={"a": {"b": [1, {"c": 2}]}, "__provider": "x"})), True
    )
    assert text(created, diff=True).splitlines()[1:] == [
        "        a: {",
        "            b: [",
        "                [0]: 1",
        "                [1]: {",
        "                    c: 2",
        "                }",
        "            ]",
        "        }",
    ]
    assert property_lines({"empty": {}}) == ["empty: {}"]


def test_a_difference_that_the_program_hides_is_named_without_its_values() -> None:
    detailed = differences({"spec": {"blob": 1}, "size": 1}, {"spec": {"blob": 2}, "size": 2})
    lines = diff_lines({"spec": {"blob": 1}, "size": 1}, {"spec": {"blob": 2}, "size": 2}, detailed, ["spec.blob"])
    assert lines == ["~ size: 1 => 2", "~ spec.blob: [diff hidden]"]


def test_the_refresh_before_an_up_is_shown_like_a_refresh() -> None:
    old, new = resource("c", outputs={"a": 1}), resource("c", outputs={"a": 2})
    found = replace(step(Op.UPDATE, old, new), detailed=differences(old.outputs, new.outputs))
    events = [StepStarted(step(Op.REFRESH, old, old), False), StepDone(found, False, 0.1)]
    assert text(Prelude("up", "dev", {}), *events).splitlines()[1:] == [
        " ~  cloud:m:Thing c changed",
        "      ~ a: 1 => 2",
    ]


def test_reads_without_a_change_are_not_shown() -> None:
    reading = step(Op.READ, None, resource("c"))
    assert text(StepStarted(reading, False), StepDone(reading, False, 0.1)) == ""


def test_a_difference_inside_a_secret_shows_nothing_of_it() -> None:
    lines = diff_lines({"a": Secret({"b": "x"})}, {"a": Secret({"b": "y"})}, {"a.b": object()})
    assert lines == ["~ a.b: [secret] => [secret]"]


def test_a_secret_within_a_message_is_removed() -> None:
    seen: list[Any] = []
    sink = without_texts(seen.append, ["tok-12345", "x"])
    sink(Diagnostic("error", "401 for tok-12345 at example.com"))
    sink(PolicyEvent(Finding("rule", "pack", "", "advisory", "has tok-12345", STACK, "About.")))
    assert seen[0].message == "401 for [secret] at example.com" and seen[1].finding.message == "has [secret]"
