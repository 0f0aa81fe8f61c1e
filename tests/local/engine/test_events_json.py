"""`--json`: every event is an apitype.EngineEvent of Pulumi (sdk/go/common/apitype/events.go), without secrets."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from jsonschema import ValidationError

from local.engine.display.text import Output
from local.engine.events import (
    Diagnostic,
    Event,
    PolicyEvent,
    PolicyLoad,
    Prelude,
    Status,
    StepDone,
    StepFailed,
    StepInfo,
    StepStarted,
)
from local.engine.events_json import JsonLines
from local.engine.policies.host import Finding
from local.engine.steps.planner import Op
from local.plugins.differences import differences
from local.plugins.values import UNKNOWN, Secret
from tests.local.engine.engine_event_schema import ENGINE_EVENT
from tests.local.engine.shown_events import STACK, creating, resource, step, summary


def written(*events: Event, failure: str = "") -> list[dict[str, Any]]:
    out = io.StringIO()
    display = JsonLines(Output(out))
    for event in events:
        display(event)
    display.close(failure)
    return [json.loads(text) for text in out.getvalue().splitlines()]


def body(event: Event, kind: str) -> Any:
    return written(event)[0][kind]


FINDING = Finding("rule", "pack", "1.0", "mandatory", "message", STACK, "About.")
CHANGED = step(Op.UPDATE, resource("web", inputs={"a": 1}), resource("web", inputs={"a": 2, "s": Secret("hunter2")}))
EVERY: tuple[Event, ...] = (
    Prelude("up", "dev", {"p:size": "2"}),
    PolicyLoad(),
    *(StepStarted(info, True) for info in (creating("web", id=UNKNOWN, inputs={"a": UNKNOWN}), CHANGED)),
    StepDone(CHANGED, False, 1.0),
    StepDone(step(Op.DELETE_REPLACED, resource("web", delete=True, init_errors=("x",)), None), False, 1.0),
    StepDone(step(Op.SAME, resource("web", protect=True), resource("web", retain_on_delete=True)), False),
    StepFailed(CHANGED),
    *(Diagnostic(severity, "text", urn) for severity in ("info", "warning", "error") for urn in ("", STACK)),
    Diagnostic("info", "waiting", STACK, ephemeral=True),
    PolicyEvent(FINDING),
    PolicyEvent(FINDING, ({"a": Secret("hunter2")}, {"a": 1})),
    summary(changes={Op.CREATE: 2, Op.SAME: 1}, policy_packs={"pack": "1.0"}),
)


@pytest.mark.parametrize("event", EVERY, ids=lambda event: type(event).__name__)
def test_every_event_matches_pulumis_schema(event: Event) -> None:
    for line in written(event):
        ENGINE_EVENT.validate(line)


def test_events_are_numbered_from_zero_and_the_last_is_a_cancel_event() -> None:
    lines = written(*EVERY)
    assert [line["sequence"] for line in lines] == list(range(len(EVERY) + 1))
    assert lines[-1]["cancelEvent"] == {} and "hunter2" not in json.dumps(lines)


def test_a_step_event_has_the_differences_and_both_states() -> None:
    metadata = body(StepStarted(CHANGED, True), "resourcePreEvent")["metadata"]
    assert metadata["op"] == "update" and metadata["diffs"] == ["a", "s"] and metadata["logical"] is True
    assert metadata["detailedDiff"]["a"] == {"diffKind": "update", "inputDiff": True}
    assert metadata["old"]["inputs"] == {"a": 1} and metadata["new"]["inputs"] == {"a": 2, "s": "[secret]"}


def test_nothing_to_compare_is_not_the_same_as_no_difference() -> None:
    same = step(Op.SAME, resource("web"), resource("web"))
    assert body(StepDone(creating("web"), False), "resOutputsEvent")["metadata"]["detailedDiff"] is None
    assert body(StepDone(same, False), "resOutputsEvent")["metadata"]["detailedDiff"] == {}


def test_differences_are_keyed_by_their_first_key_however_it_is_written() -> None:
    detailed = differences({"a.b": {"c": 1}, "d": [1]}, {"a.b": {"c": 2}, "d": [2]})
    info = StepInfo(Op.UPDATE, STACK, "t", resource("web"), resource("web"), detailed=detailed)
    assert body(StepDone(info, True), "resOutputsEvent")["metadata"]["diffs"] == ["a.b", "d"]


def test_a_remediation_event_has_the_values_before_and_after() -> None:
    reported = body(PolicyEvent(FINDING, ({"a": Secret("x")}, {"a": 1})), "policyRemediationEvent")
    assert (
        reported["before"] == {"a": "[secret]"} and reported["after"] == {"a": 1} and reported["policyName"] == "rule"
    )


def test_the_summary_event_counts_by_pulumis_operation_names() -> None:
    reported = body(summary(changes={Op.CREATE: 2}, policy_packs={"pack": "1.0"}, maybe_corrupt=True), "summaryEvent")
    assert reported["resourceChanges"] == {"create": 2} and reported["PolicyPacks"] == {"pack": "1.0"}
    assert reported["isPreview"] is True and reported["maybeCorrupt"] is True and reported["durationSeconds"] == 1


def test_a_failed_step_event_has_its_status_and_the_number_of_steps_done() -> None:
    failed = written(StepDone(CHANGED, False), StepFailed(CHANGED, Status.PARTIAL))[1]["resOpFailedEvent"]
    assert (failed["status"], failed["steps"]) == (1, 1)


def test_an_error_before_the_run_is_an_engine_event() -> None:
    failed, ended = written(failure="bad stack file")
    assert failed["diagnosticEvent"]["message"] == "bad stack file\n" and "cancelEvent" in ended
    assert failed["diagnosticEvent"]["severity"] == "error" and failed["diagnosticEvent"]["prefix"] == "error: "


def test_the_schema_rejects_unknown_fields() -> None:
    [good, _] = written(EVERY[0])
    for wrong in (good | {"cancelEvent": {}}, good | {"stray": 1}, {k: v for k, v in good.items() if k != "sequence"}):
        with pytest.raises(ValidationError):
            ENGINE_EVENT.validate(wrong)
