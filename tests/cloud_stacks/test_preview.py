"""Plans against a state: what an update would change, and where the program says so."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from local.engine import cli

from cloud_stacks.cli import main

pytestmark = pytest.mark.engine

PROGRAM = """\
import pulumi


class Pool(pulumi.ComponentResource):
    def __init__(self, name, size):
        super().__init__("shop:index:Pool", name, {"size": size, "token": pulumi.Output.secret(f"of-{size}")})


Pool("workers", "small")
"""


def test_an_update_is_reported_as_the_difference_to_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Our policy pack judges it, with this checkout's modules, whichever is installed.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (project / "Pulumi.dev.yaml").write_text("config: {}\n")
    (project / "__main__.py").write_text(PROGRAM)
    where = ["--cwd", str(project), "--stack", "dev", "--state", str(state)]
    assert cli.main(["up", "--yes", *where], io.StringIO()) == 0
    (project / "__main__.py").write_text(PROGRAM.replace('"small"', '"large"'))
    shown = io.StringIO()

    code = main(["preview", *where, "--json"], shown)

    assert code == 0, shown.getvalue()
    [stack] = json.loads(shown.getvalue())["stacks"]
    [change] = stack["changes"]
    assert (change["op"], change["name"], change["place"]) == ("update", "workers", {"path": "__main__.py", "line": 9})
    assert [(line["path"], line["before"], line["after"]) for line in change["lines"]] == [
        ("size", '"small"', '"large"'),
        ("token", "[secret]", "[secret]"),
    ]
    assert "of-large" not in shown.getvalue()
