"""Every recording of the real CLI, replayed: same exit code, counts, requests to providers and analyzer, answers.

The dynamic provider and the policy pack are the real servers; the Kubernetes provider answers from the recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests.local.engine.recordings import RECORDINGS, Call, as_texts, canonical
from tests.local.engine.sample_program import Ran

pytestmark = pytest.mark.engine

RUNS = ("01", "02", "03", "05", "06", "07", "08", "10", "11", "12", "13")
GOOD = ("01", "03", "05", "06", "08", "12", "13")
WITH_PROGRAM = ("01", "02", "03", "05", "06", "07", "08")


@pytest.mark.parametrize("run", RUNS)
def test_the_exit_code_is_the_clis(sample_runs: dict[str, Ran], run: str) -> None:
    assert sample_runs[run].code == sample_runs[run].recording.exit_code, sample_runs[run].text


@pytest.mark.parametrize("run", GOOD)
def test_the_counts_at_the_end_are_the_clis_word_for_word(sample_runs: dict[str, Ran], run: str) -> None:
    assert counted(sample_runs[run].text) == counted(text_of(run))


def text_of(run: str) -> str:
    """What the CLI printed."""
    (path,) = RECORDINGS.glob(f"{run}-*.txt")
    return path.read_text()


def counted(text: str) -> list[str]:
    """The lines under `Resources:`, up to an empty one."""
    lines = text.partition("\nResources:\n")[2].partition("\n\n")[0].splitlines()
    assert lines, text
    return [" ".join(line.split()) for line in lines]


@pytest.mark.parametrize("run", [*WITH_PROGRAM, "13"])
def test_the_dynamic_provider_gets_the_clis_requests(sample_runs: dict[str, Ran], run: str) -> None:
    ours, theirs = sample_runs[run], sample_runs[run].recording
    if run == "13":
        # Which machines the blocked `up` reached first, and so gave the new (empty) plan, is a matter of luck.
        assert as_texts(without_plan(dynamic(ours.calls))) == as_texts(without_plan(dynamic(theirs.calls)))
    else:
        assert as_texts(dynamic(ours.calls)) == as_texts(dynamic(theirs.calls))


@pytest.mark.parametrize("run", WITH_PROGRAM)
def test_the_kubernetes_provider_gets_the_clis_requests(sample_runs: dict[str, Ran], run: str) -> None:
    # The recorded provider itself fails on other requests and values.
    assert by_kind(kubernetes(sample_runs[run].calls)) == by_kind(kubernetes(sample_runs[run].recording.calls))


def test_refresh_reads_what_the_cli_reads_and_compares_only_changes(sample_runs: dict[str, Ran]) -> None:
    # The CLI compares each once more; the answer for an unchanged one changes nothing.
    ours = dynamic(sample_runs["12"].calls)
    theirs = [c for c in dynamic(sample_runs["12"].recording.calls) if c[0].endswith("/Read")]
    assert as_texts(without_plan(ours)) == as_texts(without_plan(theirs))
    assert len(kubernetes(sample_runs["12"].calls)) == 3


@pytest.mark.parametrize("run", WITH_PROGRAM)
def test_the_program_makes_the_same_registrations_and_gets_the_same_answers(
    sample_runs: dict[str, Ran], run: str
) -> None:
    ours, theirs = sample_runs[run].calls, sample_runs[run].recording.calls
    assert as_texts([registration(c) for c in monitor(ours)]) == as_texts([registration(c) for c in monitor(theirs)])


def registration(call: Call) -> Any:
    """Request and answer without the ids of provider instances, which are random."""
    request = {k: v for k, v in call.request.items() if k not in ("sourcePosition", "stackTrace", "provider")}
    request["dependencies"] = sorted(request.get("dependencies", ()))
    for key, needs in request.pop("propertyDependencies", {}).items():
        request[f"propertyDependencies.{key}"] = sorted(needs.get("urns", ()))
    provider = str(call.request.get("provider", "")).rpartition("::")[0]
    response = dict(call.response or {})
    if "pulumi:providers:" in call.urn:
        response.pop("id", None)
    return call.method, provider, request, response


@pytest.mark.parametrize("run", ["01", "02", "03"])
def test_the_analyzer_gets_the_clis_requests(sample_runs: dict[str, Ran], run: str) -> None:
    ours, theirs = sample_runs[run], sample_runs[run].recording
    for method in ("Analyzer/Remediate", "Analyzer/Analyze"):
        assert as_texts([analyzed(c.request) for c in ours.find(method)]) == as_texts(
            [analyzed(c.request) for c in theirs.find(method)]
        )
    (our_stack,), (their_stack,) = ours.find("Analyzer/AnalyzeStack"), theirs.find("Analyzer/AnalyzeStack")
    assert as_texts([analyzed(r) for r in our_stack.request["resources"]]) == as_texts(
        [analyzed(r) for r in their_stack.request["resources"]]
    )


def analyzed(request: dict[str, Any]) -> dict[str, Any]:
    properties = {k: v for k, v in request.get("properties", {}).items() if k != "__internal"}
    return {**request, "properties": properties, "dependencies": sorted(request.get("dependencies", ()))}


@pytest.mark.parametrize("run", ["01", "03", "10", "11"])
def test_policies_are_shown_with_level_and_resource_as_by_the_cli(sample_runs: dict[str, Ran], run: str) -> None:
    theirs, ours = findings_of_the_cli(text_of(run)), findings(sample_runs[run].text)
    # After a mandatory violation the CLI abandons running work; what it reported by then we report as well.
    assert theirs and theirs <= ours
    assert {level for level, _, _ in ours} == {level for level, _, _ in theirs}


def findings_of_the_cli(text: str) -> set[tuple[str, ...]]:
    """Level, rule and the resource's type, from `[LEVEL]  RULE  (TYPE: NAME)`."""
    return set(re.findall(r"\[(\w+)\]\s+([\w-]+)\s+\((\S+): ", text))


def findings(text: str) -> set[tuple[str, ...]]:
    """The same from `[LEVEL] RULE`, followed by a line `TYPE NAME` per resource, optionally with the violation."""
    rule: tuple[str, ...] = ()
    found: set[tuple[str, ...]] = set()
    for line in text.splitlines():
        if heading := re.fullmatch(r" {8}\[(\w+)\] ([\w-]+)", line):
            rule = heading.groups()
        elif about := re.match(r" {12}(\w\S*:\S+) [^ ]", line):
            found.add((*rule, about[1]))
    return found


def test_a_mandatory_violation_prevents_up_from_changing_a_machine(sample_runs: dict[str, Ran]) -> None:
    assert {c.method.partition("/")[2] for c in sample_runs["11"].calls if is_dynamic(c)} <= {"Check", "Diff"}


def dynamic(calls: Iterable[Call]) -> list[tuple[str, Any]]:
    return [(c.method, canonical(c.request)) for c in calls if is_dynamic(c)]


def is_dynamic(call: Call) -> bool:
    return call.method.startswith("ResourceProvider/") and "pulumi-python:dynamic" in call.urn


def kubernetes(calls: Iterable[Call]) -> list[Call]:
    return [c for c in calls if c.method.startswith("ResourceProvider/") and "::kubernetes:" in c.urn]


def monitor(calls: Iterable[Call]) -> list[Call]:
    return [c for c in calls if c.method.startswith("ResourceMonitor/")]


def by_kind(calls: Iterable[Call]) -> list[tuple[str, str]]:
    return sorted((c.method, c.urn) for c in calls)


def without_plan(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_plan(v) for k, v in value.items() if k != "plan"}
    return [without_plan(v) for v in value] if isinstance(value, list | tuple) else value


def test_every_recording_is_tested() -> None:
    assert {path.name[:2] for path in RECORDINGS.glob("*.jsonl")} == set(RUNS)
