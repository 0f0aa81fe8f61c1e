"""The recordings with --json: the CLI's digest of a preview holds nothing that our engine events do not say.

The CLI sums a preview up in one object, where the engine writes engine events, as the CLI does for everything else.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.engine.recordings import canonical
from tests.local.engine.sample_program import Ran, exported

pytestmark = pytest.mark.engine

RUNS = [("02", "02-preview-json"), ("07", "07-preview-change-json")]


def metadata(ran: Ran) -> dict[str, dict[str, Any]]:
    """What is told of each resource, of the steps that count."""
    told = [e["resOutputsEvent"]["metadata"] for e in ran.events if "resOutputsEvent" in e]
    return {each["urn"]: each for each in told if each.get("logical")}


def own(ran: Ran, kind: str) -> list[dict[str, Any]]:
    return [e[kind] for e in ran.events if kind in e]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_every_step_of_the_digest_is_an_event_with_the_same_operation(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    told = metadata(sample_runs[run])
    for step in exported(digest)["steps"]:
        assert told[step["urn"]]["op"] == step["op"]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_what_the_digest_leaves_out_is_unchanged_or_a_default_provider(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    listed = {step["urn"] for step in exported(digest)["steps"]}
    left_out = [m for urn, m in metadata(sample_runs[run]).items() if urn not in listed]
    assert {m["op"] for m in left_out if not m["urn"].endswith("pulumi-python::default")} <= {"same"}


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_the_events_carry_the_digests_differences_and_reasons(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    told = metadata(sample_runs[run])
    for step in exported(digest)["steps"]:
        event = told[step["urn"]]
        # The digest says nothing of what the provider was not asked about; the events compare the inputs then.
        if step["detailedDiff"] is not None:
            detailed = {
                path: {"kind": d["diffKind"], "inputDiff": d["inputDiff"]} for path, d in event["detailedDiff"].items()
            }
            assert detailed == step["detailedDiff"]
        assert set(step.get("replaceReasons") or ()) <= set(event.get("keys") or ())


def test_of_the_changed_program_two_resources_have_differences() -> None:
    detailed = [s["detailedDiff"] for s in exported("07-preview-change-json")["steps"] if s["detailedDiff"]]
    assert detailed == [
        {"spec.loadBalancerClass": {"kind": "update-replace", "inputDiff": False}},
        {"data.level": {"kind": "update-replace", "inputDiff": False}},
    ]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_old_and_new_states_agree_with_the_digests(sample_runs: dict[str, Ran], run: str, digest: str) -> None:
    told = metadata(sample_runs[run])
    for step in exported(digest)["steps"]:
        for ours, theirs in (("old", "oldState"), ("new", "newState")):
            expected = step.get(theirs)
            got = told[step["urn"]][ours]
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
def test_the_config_is_the_same_and_its_secrets_are_hidden(sample_runs: dict[str, Ran], run: str, digest: str) -> None:
    (prelude,) = own(sample_runs[run], "preludeEvent")
    assert prelude["config"] == exported(digest)["config"]


@pytest.mark.parametrize(("run", "digest"), RUNS)
def test_diagnostics_are_the_same_but_for_the_clis_own_plugins(
    sample_runs: dict[str, Ran], run: str, digest: str
) -> None:
    of_plugins = "warning: using pulumi-resource-kubernetes from $PATH"
    theirs = [d["message"] for d in exported(digest)["diagnostics"] if not d["message"].startswith(of_plugins)]
    assert [d["message"] for d in own(sample_runs[run], "diagnosticEvent")] == theirs == []


def test_what_a_policy_finds_is_told_by_the_events_though_the_digest_leaves_it_out(sample_runs: dict[str, Ran]) -> None:
    found = own(sample_runs["02"], "policyEvent")
    assert [(e["policyName"], e["enforcementLevel"]) for e in found] == [("service-no-class", "advisory")]
