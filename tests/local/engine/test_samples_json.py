"""The recordings with --json: our engine events include everything in the CLI's digest of a preview.

The CLI summarises a preview in one object, where the engine writes engine events, as the CLI does for all else.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.engine.recordings import canonical
from tests.local.engine.sample_program import Ran, exported

pytestmark = pytest.mark.engine

RUNS = [("02", "02-preview-json"), ("07", "07-preview-change-json")]


def metadata(ran: Ran) -> dict[str, dict[str, Any]]:
    """The metadata of each resource, of the steps that count."""
    reported = [e["resOutputsEvent"]["metadata"] for e in ran.events if "resOutputsEvent" in e]
    return {each["urn"]: each for each in reported if each.get("logical")}


def own(ran: Ran, kind: str) -> list[dict[str, Any]]:
    return [e[kind] for e in ran.events if kind in e]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_every_step_of_the_digest_is_an_event_with_the_same_operation(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    reported = metadata(sample_runs[run])
    for step in exported(digest)["steps"]:
        assert reported[step["urn"]]["op"] == step["op"]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_steps_missing_in_the_digest_are_unchanged_or_default_providers(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    listed = {step["urn"] for step in exported(digest)["steps"]}
    left_out = [m for urn, m in metadata(sample_runs[run]).items() if urn not in listed]
    assert {m["op"] for m in left_out if not m["urn"].endswith("pulumi-python::default")} <= {"same"}


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_the_events_carry_the_digests_differences_and_reasons(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    reported = metadata(sample_runs[run])
    for step in exported(digest)["steps"]:
        event = reported[step["urn"]]
        # The digest omits what the provider was not asked about; the events compare the inputs then.
        if step["detailedDiff"] is not None:
            detailed = {
                path: {"kind": d["diffKind"], "inputDiff": d["inputDiff"]} for path, d in event["detailedDiff"].items()
            }
            assert detailed == step["detailedDiff"]
        assert set(step.get("replaceReasons") or ()) <= set(event.get("keys") or ())


def test_two_resources_of_the_changed_program_have_differences() -> None:
    detailed = [s["detailedDiff"] for s in exported("07-preview-change-json")["steps"] if s["detailedDiff"]]
    assert detailed == [
        {"spec.loadBalancerClass": {"kind": "update-replace", "inputDiff": False}},
        {"data.level": {"kind": "update-replace", "inputDiff": False}},
    ]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_old_and_new_states_agree_with_the_digests(sample_runs: dict[str, Ran], run: str, digest: str) -> None:
    reported = metadata(sample_runs[run])
    for step in exported(digest)["steps"]:
        for ours, theirs in (("old", "oldState"), ("new", "newState")):
            expected = step.get(theirs)
            got = reported[step["urn"]][ours]
            assert (got is None) == (expected is None)
            for key in ("type", "urn", "parent", "inputs"):
                if expected is not None:
                    assert canonical(got.get(key) or None) == canonical(expected.get(key)), (step["urn"], ours, key)


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_the_summary_counts_the_same(sample_runs: dict[str, Ran], run: str, digest: str) -> None:
    (summary,) = own(sample_runs[run], "summaryEvent")
    assert summary["resourceChanges"] == exported(digest)["changeSummary"]
    assert summary["isPreview"] is True


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_the_event_has_the_clis_config_with_secrets_hidden(sample_runs: dict[str, Ran], run: str, digest: str) -> None:
    (prelude,) = own(sample_runs[run], "preludeEvent")
    assert prelude["config"] == exported(digest)["config"]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_diagnostics_are_the_clis_except_for_its_own_plugins(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    of_plugins = "warning: using pulumi-resource-kubernetes from $PATH"
    theirs = [d["message"] for d in exported(digest)["diagnostics"] if not d["message"].startswith(of_plugins)]
    assert [d["message"] for d in own(sample_runs[run], "diagnosticEvent")] == theirs == []


def test_policy_findings_are_events_although_the_digest_omits_them(sample_runs: dict[str, Ran]) -> None:
    found = own(sample_runs["02"], "policyEvent")
    assert [(e["policyName"], e["enforcementLevel"]) for e in found] == [("service-no-class", "advisory")]
