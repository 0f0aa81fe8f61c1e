"""States of the real CLI after a kill in a step: the engine imports them and finishes the step."""

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

SAMPLE = SAMPLES / "killed"


class Killed:
    """The sample program, in a folder of its own, without anything that delays a step."""

    def __init__(self, directory: Path) -> None:
        program = directory / "program"
        self.where = ["--stack", "dev", "--cwd", str(program), "--state", str(directory / "state")]
        shutil.copytree(SAMPLE, program)
        runtime = f"runtime:\n  name: python\n  options:\n    virtualenv: {sys.prefix}\n"
        (program / "Pulumi.yaml").write_text(f"name: killed\n{runtime}")
        (program / "Pulumi.dev.yaml").write_text("config:\n  killed:size: large\n")

    def call(self, *arguments: str) -> str:
        out = io.StringIO()
        sys.modules.pop("slow", None)
        assert cli.main([*arguments, *self.where], out) == 0, out.getvalue()
        return out.getvalue()

    def up(self) -> dict[str, int]:
        """The number of resources per operation."""
        events = map(json.loads, self.call("up", "--skip-preview", "--json").splitlines())
        (summary,) = [e["summaryEvent"] for e in events if "summaryEvent" in e]
        return dict(summary["resourceChanges"])


@pytest.mark.parametrize(
    ("export", "changes"),
    [
        pytest.param("01", {"create": 2, "same": 2}, id="in a create"),
        pytest.param("14", {"same": 4}, id="in a create that the CLI did again and kept pending"),
        pytest.param("21", {"update": 1, "same": 3}, id="in an update, whose id the CLI leaves out"),
        pytest.param("31", {"delete": 1, "create": 2, "same": 2}, id="in a delete of what the program wants again"),
    ],
)
def test_the_next_up_finishes_what_a_kill_of_the_cli_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: str, changes: dict[str, Any]
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    stack = Killed(tmp_path)
    stack.call("stack", "import", "--file", str(SAMPLE / "recordings" / f"{export}-export.json"))

    assert stack.up() == changes
    assert stack.up() == {"same": 4}
    assert "pending_operations" not in json.loads(stack.call("stack", "export"))["deployment"]
    sys.modules.pop("slow", None)
