"""Three branches, and the comments that they get: golden files, which `UPDATE_GOLDENS=1` writes anew."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest

from cloud_stacks.cli import main
from tests.cloud_stacks.branches import Repository

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

GOLDEN = Path(__file__).parent / "golden"
POOL = """\
    - name: batch
      count: 2
      type: {type}
      zones: [{zones}]
  cloud-controller:executors:
"""
ANNOTATION = """\
                    "annotations": {"service.beta.kubernetes.io/dlb-scheme": "internal"},
"""
BRANCHES = {
    "annotation-changed": (
        {
            "__main__.py": (
                '"ports": [{"port": 8080, "target_port": "main"}],\n',
                '"ports": [{"port": 8080, "target_port": "main"}],\n' + ANNOTATION,
            )
        },
        ("aws-local", "local"),
    ),
    "node-pool-added": (
        {
            "stacks/Pulumi.mycloud-prod.yaml": (
                "  cloud-controller:executors:\n",
                POOL.format(type="m1.large", zones="zone-a, zone-b"),
            ),
            "stacks/Pulumi.aws-prod.yaml": (
                "  cloud-controller:executors:\n",
                POOL.format(type="c7g.xlarge", zones="eu-central-1a, eu-central-1b"),
            ),
        },
        ("aws-prod", "mycloud-prod"),
    ),
    "rbac-broken": (
        {
            "cloud_controller/rbac.py": (
                "PolicyRule((group,), (resource,), _ordered(allowed))",
                'PolicyRule((group,), (resource,), ("*",))',
            )
        },
        ("alicloud-prod", "mycloud-prod"),
    ),
}
"""The edits of each, and the stacks that its comment is about."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.mark.parametrize("name", BRANCHES)
def test_the_comment_on_a_branch(repository: Repository, name: str, tmp_path: Path) -> None:
    edits, stacks = BRANCHES[name]
    repository.branch(name, edits)
    chosen = [word for stack in stacks for word in ("--stack", stack)]

    code = main(
        ["diff", "--base", "main", "--head", name, "--cwd", str(repository.folder), "--out", str(tmp_path), *chosen],
        io.StringIO(),
    )

    assert code == (1 if name == "rbac-broken" else 0)
    comment, golden = (tmp_path / "comment.md").read_text(), GOLDEN / f"{name}.md"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(comment)
    # The program's lines move with every edit of it.
    assert _without_lines(comment) == _without_lines(golden.read_text())
    sarif = json.loads((tmp_path / "report.sarif").read_text())
    places = [each["locations"][0]["physicalLocation"] for each in sarif["runs"][0]["results"]]
    program = (repository.folder / "__main__.py").read_text().splitlines()
    assert bool(places) == (name != "node-pool-added")
    assert all(place["artifactLocation"]["uri"] == "__main__.py" for place in places)
    assert all(re.search(r"= \w+\($", program[place["region"]["startLine"] - 1]) for place in places)
    assert repository.git("worktree", "list").count("\n") == 0


def _without_lines(text: str) -> str:
    return re.sub(r"(__main__\.py):\d+", r"\1:LINE", text)
