"""Commits in folders of their own, each with its requirements."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from cloud_stacks.checkouts import CheckoutError, checked_out, merge_base
from tests.cloud_stacks.test_wheel import git

pytestmark = pytest.mark.integration


def ignored(message: str) -> None:
    del message


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (folder / "requirements.txt").write_text("# nothing\n")
    (folder / "value").write_text("base")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")
    return folder


def test_a_commit_is_checked_out_beside_the_working_folder_and_removed(project: Path) -> None:
    (project / "value").write_text("mine")
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {project}/ran\n")
    hook.chmod(0o755)

    with checked_out(project, "main", ignored) as base:
        assert (base.project / "value").read_text() == "base"
        assert base.python == sys.executable

    assert (project / "value").read_text() == "mine"
    assert not base.project.exists() and not (project / "ran").exists()
    assert list((project / ".git").glob("worktrees/*")) == []


def test_in_a_hook_the_commit_in_progress_stays_as_it_is(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "value").write_text("mine")
    index = project / ".git" / "index.lock"
    shutil.copy(project / ".git" / "index", index)
    with monkeypatch.context() as hook:
        hook.setenv("GIT_INDEX_FILE", str(index))
        git(project, "add", "value")
    before = index.read_bytes()
    # As for `git commit --all` in a worktree.
    monkeypatch.setenv("GIT_INDEX_FILE", str(index))
    monkeypatch.setenv("GIT_DIR", str(project / ".git"))

    with checked_out(project, "main", ignored) as base:
        assert (base.project / "value").read_text() == "base"

    assert index.read_bytes() == before


def test_a_base_with_other_requirements_gets_a_virtual_environment_once(project: Path) -> None:
    (project / "requirements.txt").write_text("# something else\n")
    said: list[str] = []

    for _ in range(2):
        with checked_out(project, "main", said.append) as base:
            assert base.python.startswith(os.environ["XDG_CACHE_HOME"])
            assert (base.project / ".venv" / "bin" / "python").exists()

    assert [line.partition(" into ")[0] for line in said] == ["installing the base's requirements.txt"]


def test_the_set_up_of_a_commit_sees_no_key(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    (project / "pyproject.toml").write_text(
        "[project]\nname = 'shop'\ndynamic = ['version']\n[project.entry-points.clouds]\n"
        "[tool.setuptools.dynamic]\nversion = {attr = 'seen.VERSION'}\n"
    )
    seen = tmp_path / "seen"
    (project / "seen.py").write_text(
        f"import os\nopen({str(seen)!r}, 'w').write(repr(dict(os.environ)))\nVERSION = str(1)\n"
    )
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message", "with entry points")

    with checked_out(project, "main", ignored):
        pass

    assert "'PATH'" in seen.read_text()
    assert "hunter2" not in seen.read_text()


@pytest.mark.parametrize("ref", ["nothing", "--force", "-x"])
def test_what_is_no_commit_is_refused_by_name(project: Path, ref: str) -> None:
    with pytest.raises(CheckoutError, match="fetch-depth"), checked_out(project, ref, ignored):
        pass


def test_the_base_is_where_the_branches_parted(project: Path) -> None:
    git(project, "checkout", "--quiet", "-b", "change")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "change")
    git(project, "checkout", "--quiet", "main")
    parted = merge_base(project, "main", "main")
    git(project, "commit", "--quiet", "--allow-empty", "--message", "later")

    assert merge_base(project, "main", "change") == parted
