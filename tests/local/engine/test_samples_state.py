"""State both ways: the engine writes what the CLI writes, and imports the CLI's exports unchanged."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from local.engine.stack.state_import import problems
from tests.local.engine.recordings import PASSPHRASE, Recording
from tests.local.engine.sample_program import CHANGED, FIRST, Ran, Sample, exported, readable

pytestmark = pytest.mark.engine

EXPORTS = [("04-export", FIRST, "05-up-again"), ("09-export", CHANGED, "10-policy-violation")]
"""Each exported state, its config, and a recording in which Kubernetes answers the requests of a run on top of it."""


@pytest.mark.parametrize(("run", "export"), [("03", "04-export"), ("08", "09-export")])
def test_the_state_is_the_clis_except_for_ids_and_times(sample_runs: dict[str, Ran], run: str, export: str) -> None:
    theirs = exported(export)
    ours = {"deployment": {**theirs["deployment"], "resources": sample_runs[run].state}}
    assert readable(ours, positions=True) == readable(theirs, positions=True)


@pytest.mark.parametrize("run", ["03", "08", "11"])
def test_the_state_is_one_that_the_cli_accepts(sample_runs: dict[str, Ran], run: str) -> None:
    deployment = {"resources": sample_runs[run].state}
    assert len(sample_runs[run].state) >= 9
    assert list(problems(deployment, "sample", "dev")) == []


@pytest.mark.parametrize("export", ["04-export", "09-export"])
def test_the_clis_own_state_passes_the_same_checks(export: str) -> None:
    assert list(problems(exported(export)["deployment"], "sample", "dev")) == []


def test_the_document_around_the_resources_has_the_clis_form(sample: Sample) -> None:
    sample.configure(FIRST)
    take(sample, "04-export")
    ours, theirs = sample.export(), exported("04-export")

    assert set(ours) == set(theirs) == {"version", "deployment"} and ours["version"] == theirs["version"] == 3
    assert set(ours["deployment"]) == set(theirs["deployment"])
    for key in ("secrets_providers", "metadata"):
        assert ours["deployment"][key] == theirs["deployment"][key]
    manifests = ours["deployment"]["manifest"], theirs["deployment"]["manifest"]
    assert {k: v for k, v in manifests[0].items() if k != "time"} == {
        k: v for k, v in manifests[1].items() if k != "time"
    }


def take(sample: Sample, export: str) -> dict[str, Any]:
    """Import a state of the CLI, for the installed SDK: another version would be a change of its own."""
    text = json.dumps(exported(export)).replace('"4.32.0"', json.dumps(sdk_version()))
    file = sample.directory / "export.json"
    file.write_text(text)
    assert sample.call("stack", "import", "--file", str(file)) == (
        0,
        f"Import complete: {len(json.loads(text)['deployment']['resources'])} resources.\n",
    )
    return dict(json.loads(text))


def sdk_version() -> str:
    return version("pulumi-kubernetes")


@pytest.mark.parametrize(("export", "config", "recording"), EXPORTS)
def test_a_state_of_the_cli_is_exported_unchanged(
    sample: Sample, export: str, config: dict[str, Any], recording: str
) -> None:
    del recording
    sample.configure(config)
    theirs = take(sample, export)
    assert decrypted(sample.export()) == decrypted(theirs)


def decrypted(document: dict[str, Any]) -> Any:
    """Everything, times and positions included, except the ciphertexts, which are never the same twice."""
    whole = {r["urn"]: r for r in document["deployment"]["resources"]}
    shown = readable(document, positions=True)
    return {urn: {**resource, "inputs": 0, "outputs": 0} | {"shown": shown[urn]} for urn, resource in whole.items()}


@pytest.mark.parametrize(("export", "config", "recording"), EXPORTS)
def test_after_the_import_a_preview_is_empty_and_up_changes_nothing(
    sample: Sample, export: str, config: dict[str, Any], recording: str
) -> None:
    sample.configure(config)
    theirs = take(sample, export)
    sample.current = Ran(Recording(recording))

    previewed, counted = sample.call("preview", "--json")
    applied, counted_again = sample.call("up", "--skip-preview", "--json")

    assert (previewed, applied) == (0, 0)
    resources = len(theirs["deployment"]["resources"]) - 1  # the default provider is not counted
    assert changes(counted) == changes(counted_again) == {"same": resources}
    assert without_plan(readable(sample.export(), positions=True)) == without_plan(readable(theirs, positions=True))
    assert times(sample.export()) == times(theirs)


def without_plan(resources: dict[str, Any]) -> dict[str, Any]:
    """Without the input that a machine's check empties once the machine exists: the CLI's `up` writes that, too."""
    return {
        urn: {**each, "inputs": {k: v for k, v in each.get("inputs", {}).items() if k != "plan"}}
        for urn, each in resources.items()
    }


def changes(text: str) -> dict[str, int]:
    (summary,) = [e["summaryEvent"] for e in map(json.loads, text.splitlines()) if "summaryEvent" in e]
    return dict(summary["resourceChanges"])


def times(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {r["urn"]: (r["created"], r["modified"]) for r in document["deployment"]["resources"]}


def test_the_passphrase_of_the_samples_is_not_in_the_state(sample: Sample, tmp_path: Path) -> None:
    sample.configure(FIRST)
    take(sample, "04-export")
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file():
            assert PASSPHRASE not in path.read_text() and "s3cret" not in path.read_text()
