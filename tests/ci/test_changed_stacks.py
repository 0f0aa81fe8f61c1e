"""tools/changed-stacks: which stacks a change may affect."""

from __future__ import annotations

import json
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "changed-stacks"
STACKS = ["staging", "prod"]


@pytest.mark.parametrize(
    ("files", "affected"),
    [
        ([], []),
        (["stacks/Pulumi.prod.yaml"], ["prod"]),
        (["stacks/policies.prod.json"], ["prod"]),
        (["stacks/Pulumi.prod.yaml", "stacks/Pulumi.staging.yaml"], STACKS),
        (["stacks/Pulumi.another.yaml"], []),
        (["README.md", "docs/ci.md", "tests/ci/actions.py", ".github/workflows/ci.yml", "LICENSE"], []),
        (["__main__.py"], STACKS),
        (["requirements.txt"], STACKS),
        (["components/docs/page.py"], STACKS),
        (["docs/ci.md", "stacks/Pulumi.prod.yaml", "policy/checklist/__init__.py"], STACKS),
    ],
)
def test_the_stacks_that_files_affect(files: list[str], affected: list[str]) -> None:
    assert tool().affected(STACKS, files) == affected


@pytest.mark.integration
def test_the_files_are_those_that_differ_from_the_base(tmp_path: Path) -> None:
    base = repository(tmp_path)
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text("config: {a: b}\n")
    git(tmp_path, "commit", "--all", "--message", "Change prod")

    assert changed(tmp_path, base) == ["prod"]
    assert changed(tmp_path, "HEAD") == []


@pytest.mark.integration
@pytest.mark.parametrize("base", ["", "0" * 40, "f" * 40, "--help"])
def test_without_a_base_every_stack_counts_as_changed(tmp_path: Path, base: str) -> None:
    repository(tmp_path)

    assert changed(tmp_path, base) == STACKS


@pytest.mark.integration
@pytest.mark.parametrize(
    ("stacks", "error"),
    [
        ("prod", "not JSON"),
        ('"prod"', 'not a list of names, such as ["staging", "prod"]: "prod"'),
        ('["a b"]', "'a b' is not a stack's name"),
        ('["gone"]', "stacks/Pulumi.gone.yaml does not exist"),
    ],
)
def test_stacks_that_cannot_be_run_are_named(tmp_path: Path, stacks: str, error: str) -> None:
    repository(tmp_path)

    done = call(tmp_path, stacks, "HEAD")

    assert done.returncode == 2
    assert error in done.stderr


def tool() -> Any:
    loader = SourceFileLoader("changed_stacks", str(TOOL))
    spec = spec_from_loader("changed_stacks", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def repository(folder: Path) -> str:
    """A repository with the stacks' files; its commit."""
    (folder / "stacks").mkdir()
    for stack in STACKS:
        (folder / "stacks" / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--message", "Begin")
    return git(folder, "rev-parse", "HEAD").strip()


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def changed(folder: Path, base: str) -> Any:
    done = call(folder, json.dumps(STACKS), base)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def call(folder: Path, stacks: str, base: str) -> subprocess.CompletedProcess[str]:
    command = [str(TOOL), f"--stacks={stacks}", f"--base={base}"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
