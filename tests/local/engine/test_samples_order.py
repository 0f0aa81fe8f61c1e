"""The order of events: what holds for every recording of the real CLI must hold for the engine's run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.local.engine.recordings import RECORDINGS, Call
from tests.local.engine.sample_program import Ran, exported

pytestmark = pytest.mark.engine

REGISTERED = "ResourceMonitor/RegisterResource"
OUTPUTS = "ResourceMonitor/RegisterResourceOutputs"
WITH_PROGRAM = ("01", "02", "03", "05", "06", "07", "08")
STACK = "urn:pulumi:dev::sample::pulumi:pulumi:Stack::sample-dev"


@pytest.mark.parametrize("run", [*WITH_PROGRAM, "13"])
def test_the_calls_for_each_resource_have_the_clis_order(sample_runs: dict[str, Ran], run: str) -> None:
    ours, theirs = by_resource(sample_runs[run].calls), by_resource(sample_runs[run].recording.calls)
    assert ours == theirs
    if run in ("01", "02", "03"):
        service = next(methods for urn, methods in ours.items() if urn.endswith("::web"))
        assert service[:3] == ["ResourceProvider/Check", "Analyzer/Remediate", "Analyzer/Analyze"]


@pytest.mark.parametrize("run", ["10", "11"])
def test_the_calls_of_an_interrupted_run_have_the_clis_order(sample_runs: dict[str, Ran], run: str) -> None:
    ours, theirs = by_resource(sample_runs[run].calls), by_resource(sample_runs[run].recording.calls)
    both = ours.keys() & theirs.keys()
    assert len(both) >= 4  # which of the independent ones it reaches is a matter of luck
    for urn in both:
        reached = min(len(ours[urn]), len(theirs[urn]))
        assert ours[urn][:reached] == theirs[urn][:reached], urn


def by_resource(calls: Sequence[Call]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for call in calls:
        # The outputs of a component arrive at any time.
        if call.urn and call.method not in (OUTPUTS, "ResourceProvider/Configure"):
            found.setdefault(call.urn, []).append(call.method)
    return found


@pytest.fixture(params=["engine", "CLI"])
def calls(request: pytest.FixtureRequest, sample_runs: dict[str, Ran], run: str) -> list[Call]:
    """The engine's calls and the CLI's: a constraint that the CLI does not meet is not one."""
    ran = sample_runs[run]
    return ran.calls if request.param == "engine" else ran.recording.calls


@pytest.mark.parametrize("run", WITH_PROGRAM)
def test_no_call_for_a_resource_precedes_its_dependencies_registration(calls: list[Call]) -> None:
    registered: set[str] = set()
    begun: dict[str, set[str]] = {}
    for call in calls:
        if call.urn:
            begun.setdefault(call.urn, set(registered))
        if call.method == REGISTERED:
            assert needs(call) <= begun[call.urn], call.urn
            registered.add(call.urn)
    assert len(registered) in (8, 9)


def needs(call: Call) -> set[str]:
    request = call.request
    provider = str(request.get("provider", "")).rpartition("::")[0]
    return {n for n in (request.get("parent", ""), provider, *request.get("dependencies", ())) if n}


@pytest.mark.parametrize("run", WITH_PROGRAM)
def test_a_components_outputs_come_after_its_children_and_the_stacks_policies_after_the_stacks_outputs(
    calls: list[Call],
) -> None:
    places = {(c.method, c.urn): n for n, c in enumerate(calls)}
    for call in calls:
        parent = call.request.get("parent", "")
        if call.method == REGISTERED and parent != STACK and parent:
            assert places[REGISTERED, call.urn] < places[OUTPUTS, parent]
    assert (OUTPUTS, STACK) in places
    if ("Analyzer/AnalyzeStack", "") in places:
        assert places["Analyzer/AnalyzeStack", ""] > max(n for (method, _), n in places.items() if "Monitor" in method)


@pytest.mark.parametrize("run", ["08"])
def test_a_delete_first_replacement_precedes_its_create_and_other_deletions_follow_the_program(
    calls: list[Call],
) -> None:
    service = [c.method for c in calls if c.urn.endswith("::web") and c.method.startswith("ResourceProvider/")]
    assert service.index("ResourceProvider/Delete") < service.index("ResourceProvider/Create")
    deletes = {c.urn.rpartition("::")[2]: n for n, c in enumerate(calls) if c.method == "ResourceProvider/Delete"}
    assert deletes["settings"] > max(n for n, c in enumerate(calls) if c.method in (REGISTERED, OUTPUTS))


@pytest.mark.parametrize("run", ["13"])
def test_destroy_deletes_dependents_before_a_resource(calls: list[Call]) -> None:
    deleted = [c.urn for c in calls if c.method == "ResourceProvider/Delete"]
    pairs = list(dependents(deleted))
    assert len(deleted) == 6 and len(pairs) == 4
    for later, sooner in pairs:
        assert deleted.index(sooner) < deleted.index(later)


def dependents(urns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of these to be deleted one after the other."""
    for resource in exported("09-export")["deployment"]["resources"]:
        for needed in resource.get("dependencies") or ():
            if needed in urns and resource["urn"] in urns:
                yield needed, resource["urn"]


@pytest.mark.parametrize("run", ["11"])
def test_after_a_mandatory_violation_nothing_new_is_created(calls: list[Call]) -> None:
    assert not [c for c in calls if c.method in ("ResourceProvider/Create", "ResourceProvider/Delete", OUTPUTS)]


def test_every_recording_is_compared_with_an_order() -> None:
    # A refresh has no order: all reads are concurrent.
    assert {p.name[:2] for p in RECORDINGS.glob("*.jsonl")} == {*WITH_PROGRAM, "10", "11", "12", "13"}
