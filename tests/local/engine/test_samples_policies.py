"""The runs of the real CLI with a policy pack, one after the other: same violations, steps, outputs and exit codes."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from local.engine import cli
from tests.local.engine.recordings import PASSPHRASE, SAMPLES

pytestmark = pytest.mark.engine

RUNS = [json.loads(line) for line in (SAMPLES / "policy" / "recordings" / "runs.jsonl").read_text().splitlines()]


class Policed:
    """The sample program with its pack, in a folder of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "program"
        self.where = ["--stack", "dev", "--cwd", str(self.directory), "--state", str(directory / "state")]
        shutil.copytree(SAMPLES / "policy", self.directory)
        runtime = f"runtime:\n  name: python\n  options:\n    virtualenv: {sys.prefix}\n"
        (self.directory / "Pulumi.yaml").write_text(f"name: policed\n{runtime}")
        (self.directory / "pack" / "PulumiPolicy.yaml").write_text(f"{runtime}version: 0.2.0\n")

    def call(self, *arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        # A process runs one program; other tests have modules of that name, too.
        sys.modules.pop("providers", None)
        return cli.main([*arguments, *self.where], out), out.getvalue()

    def run(self, recorded: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
        """Run it as the CLI was run; returns the exit code and the events."""
        (self.directory / "Pulumi.dev.yaml").write_text(f"config:\n  policed:size: {recorded['size']}\n")
        options = [str(self.directory / o) if o.endswith(".json") else o for o in recorded["options"]]
        more = ["--skip-preview"] if recorded["verb"] == "up" else []
        pack = str(self.directory / "pack")
        code, text = self.call(recorded["verb"], "--json", "--policy-pack", pack, *more, *options)
        return code, [json.loads(line) for line in text.splitlines()]

    def sizes(self) -> dict[str, str]:
        resources = json.loads(self.call("stack", "export")[1])["deployment"]["resources"]
        items = [r for r in resources if r["type"].endswith(":Item")]
        return {r["urn"].rpartition("::")[2]: r["inputs"]["size"] for r in items}


def violations(events: list[dict[str, Any]]) -> list[list[str]]:
    reported = [e["policyEvent"] for e in events if "policyEvent" in e]
    return sorted(
        [t["policyName"], t["resourceUrn"].rpartition("::")[2], t["message"].split("\n")[-1]] for t in reported
    )


def test_policies_decide_as_under_the_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    policed = Policed(tmp_path)
    for recorded in RUNS:
        code, events = policed.run(recorded)

        name = recorded["run"]
        assert (name, code) == (name, recorded["exit"])
        if "violations" in recorded:
            # The levels differ on purpose: what cannot be evaluated in a preview is `not-evaluated`, not advisory.
            assert violations(events) == sorted([p, r, m] for p, _, r, m in recorded["violations"]), name
            (summary,) = [e["summaryEvent"] for e in events if "summaryEvent" in e]
            assert summary["resourceChanges"] == recorded["counts"], name
        if "outputs" in recorded:
            outputs = json.loads(policed.call("stack", "output", "--json")[1])
            assert {k: v for k, v in outputs.items() if k != "token"} == recorded["outputs"], name
            assert policed.sizes() == recorded["sizes"], name
    sys.modules.pop("providers", None)
