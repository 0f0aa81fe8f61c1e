"""Plans as Pulumi's CLI writes them, in each of its forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cloud_stacks.comparison import report
from cloud_stacks.outcome import NotEvents, Outcome, Place, of_text

SAMPLES = Path(__file__).parent / "samples"
PREVIEW = Path(__file__).parent / "samples" / "preview.json"
"""What Pulumi's CLI wrote (`preview --json`)."""
URN = "urn:pulumi:dev::shop::"
STACK = f"{URN}pulumi:pulumi:Stack::shop-dev"


def event(op: str, urn: str, old: object, new: object, **more: object) -> dict[str, object]:
    states = {name: {"inputs": value} if value is not None else None for name, value in (("old", old), ("new", new))}
    return {"resourcePreEvent": {"metadata": {"op": op, "urn": urn, "detailedDiff": None, **states, **more}}}


def lines(*events: object) -> str:
    return "\n".join(map(json.dumps, events))


def step(op: str, urn: str, old: object, new: object, **more: object) -> dict[str, object]:
    found: dict[str, object] = {"op": op, "urn": urn, "detailedDiff": None, **more}
    return found | {name: {"inputs": v} for name, v in (("oldState", old), ("newState", new)) if v is not None}


def seen(outcome: Outcome) -> object:
    return outcome.stack, outcome.resources, outcome.findings, outcome.problems


def test_the_clis_digest_and_its_events_say_the_same() -> None:
    urn, gone = f"{URN}kubernetes:core/v1:Service::web", f"{URN}kubernetes:core/v1:ConfigMap::old"
    old, new = {"spec": {"type": "ClusterIP"}}, {"spec": {"type": "LoadBalancer"}}
    diff = {"detailedDiff": {"spec.type": {"kind": "update-replace", "inputDiff": False}}}
    message = {"message": "error: preview failed\n", "severity": "error"}
    digest = {
        "steps": [
            step("same", STACK, {}, {}),
            step("create-replacement", urn, old, new, **diff),
            step("replace", urn, old, new, replaceReasons=["spec.type"], **diff),
            step("delete", gone, {"data": {}}, None),
        ],
        "diagnostics": [message],
    }
    events = [
        event("same", STACK, {}, {}),
        event("create-replacement", urn, old, new, **diff),
        event("replace", urn, old, new, keys=["spec.type"], **diff),
        event("delete", gone, {"data": {}}, None),
        {"diagnosticEvent": message},
    ]

    from_digest, from_events = of_text(json.dumps(digest)), of_text(lines(*events))

    assert seen(from_digest) == seen(from_events)
    assert [(each.op, each.name) for each in from_digest.resources] == [
        ("same", "shop-dev"),
        ("replace", "web"),
        ("delete", "old"),
    ]
    assert report(from_digest).failed


def test_a_preview_of_the_real_cli_is_read_with_the_programs_lines() -> None:
    outcome = of_text(PREVIEW.read_text())

    changed = {each.name: (each.op, each.reasons, each.place) for each in outcome.resources if each.op != "same"}
    assert changed["web"][:2] == ("replace", ("spec.loadBalancerClass",))
    assert changed["settings"][:2] == ("replace", ("data.level",))
    assert isinstance(changed["web"][2], Place) and changed["web"][2].path == "__main__.py"
    assert report(outcome).addresses == 1
    assert report(outcome).counts == {"replace": 2, "update": 1, "create": 1}


def test_a_policy_that_could_not_run_is_not_evaluated() -> None:
    about = {"policyName": "p", "enforcementLevel": "advisory", "resourceUrn": STACK}
    message = "<{%reset%}>can't run policy 'p' during preview: string value at .x can't be known\n"

    [finding] = of_text(lines({"policyEvent": {**about, "message": message}})).findings

    assert finding.level == "not-evaluated" and not finding.message.startswith("<")


def test_a_violation_that_only_names_such_a_text_stays_one() -> None:
    about = {"policyName": "p", "enforcementLevel": "mandatory", "resourceUrn": STACK}
    found = report(of_text(lines({"policyEvent": {**about, "message": "web of can't run policy: is public"}})))

    assert [each.level for each in found.findings] == ["mandatory"] and found.failed


def test_the_values_of_a_kubernetes_secret_are_hidden_even_if_the_program_does_not_say_so() -> None:
    urn = f"{URN}kubernetes:core/v1:Secret::token"
    old, new = ({"stringData": {"a": value}} for value in ("hunter2", "hunter3"))
    text = lines(event("update", urn, old, new, diffs=["stringData"]))

    [change] = report(of_text(text)).changes

    assert [(line.path, line.before, line.after) for line in change.lines] == [("stringData", "[secret]", "[secret]")]


@pytest.mark.parametrize("kind", ["kubernetes:core/v1:SecretList", "kubernetes:core/v1:List", "kubernetes:v1:Secret"])
def test_the_values_of_secrets_in_lists_and_custom_resources_are_hidden_too(kind: str) -> None:
    said = ({"kind": "Secret", "data": {"a": value}, "stringData": {"b": value}} for value in ("hunter2", "hunter3"))
    old, new = ({"items": [each]} if kind.endswith("List") else each for each in said)

    [resource] = of_text(lines(event("update", f"{URN}{kind}::tokens", old, new, diffs=["items"]))).resources

    assert "hunter" not in json.dumps([resource.before, resource.after])


def test_a_deletion_that_leaves_the_resource_is_told_from_one_that_does_not() -> None:
    urn = f"{URN}kubernetes:core/v1:Service::web"
    state = {"inputs": {"spec": {"type": "LoadBalancer"}}, "retainOnDelete": True}
    digest = {"steps": [{"op": "delete", "urn": urn, "oldState": state}]}
    metadata = {"op": "delete", "urn": urn, "old": state, "new": None}

    for text in (json.dumps(digest), lines({"resourcePreEvent": {"metadata": metadata}})):
        assert [each.retained for each in of_text(text).resources] == [True]


def test_the_unchanged_resources_that_a_digest_only_counts_are_reported() -> None:
    """Recorded by `pulumi preview --json` of CLI 3.274.1: of six unchanged resources it lists the stack alone."""
    recorded = (SAMPLES / "preview-unchanged.json").read_text()

    found = report(of_text(recorded))

    assert (found.changes, found.unchanged) == ((), 6)
    assert report(of_text('{"changeSummary": {"same": 6}}')).unchanged == 6


def test_internal_inputs_and_default_providers_are_no_differences() -> None:
    urn = f"{URN}pulumi-python:dynamic/cloudcontroller:CloudController::c"
    provider = f"{URN}pulumi:providers:aws::default_7_51_1"
    old, new = {"__provider": "a", "plan": [1], "plan_number": 1, "x": 1}, {"__provider": "b", "plan": [2], "x": 2}

    outcome = of_text(lines(event("update", urn, old, new), event("create", provider, None, {})))

    [change] = report(outcome).changes
    assert [line.path for line in change.lines] == ["x"]
    [others] = report(of_text(lines(event("update", f"{URN}azure:vm:VirtualMachine::c", old, new)))).changes
    assert [line.path for line in others.lines] == ["plan[0]", "plan_number", "x"]


def test_a_provider_of_the_programs_own_is_reported_whatever_its_name() -> None:
    kind = f"{URN}pulumi:providers:kubernetes::"
    events = [event("create", f"{kind}{name}", None, {}) for name in ("default", "default_4_32_0", "default-eu")]

    assert [each.name for each in of_text(lines(*events)).resources] == ["default-eu"]


def test_an_interrupted_programs_traceback_is_no_problem_of_the_plan() -> None:
    interrupt = {"diagnosticEvent": {"message": "Traceback ...\nKeyboardInterrupt", "severity": "info#err"}}
    text = lines(event("same", STACK, {}, {}), interrupt)

    assert of_text(text).problems == ()


def test_an_error_that_only_names_an_interruption_is_a_problem() -> None:
    said = {"message": "error: KeyboardInterrupt-handler: no such image\n", "severity": "error"}

    assert [each.severity for each in of_text(lines({"diagnosticEvent": said})).problems] == ["error"]


@pytest.mark.parametrize(
    "text", ["not json", "[1]", '{"a": 1}\n[2]', '"steps"', '{"policyEvent": {}}', '{"steps": [{}]}', '{"steps": 1}']
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(NotEvents):
        of_text(text)


def test_the_digest_of_a_program_that_failed_before_its_first_step_says_why() -> None:
    digest = {
        "config": {"shop:cloud": "aws"},
        "diagnostics": [{"message": "error: no such key\n", "severity": "error"}],
    }

    for text in (json.dumps(digest), json.dumps(digest, indent=4)):
        [problem] = of_text(text).problems
        assert (problem.severity, problem.message) == ("error", "no such key")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "{}",
        "{}\n{}\n",
        '{"preludeEvent": {"config": {"shop:cloud": "aws"}}}\n{"cancelEvent": {}}',
        '{"config": {"shop:cloud": "aws"}, "duration": 1}',
    ],
)
def test_the_output_of_an_engine_that_wrote_nothing_is_no_plan(text: str) -> None:
    with pytest.raises(NotEvents, match="it is empty"):
        of_text(text)
