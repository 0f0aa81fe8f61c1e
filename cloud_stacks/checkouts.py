"""A commit's project in a folder of its own, with a Python that has its requirements.

A commit with the same locked requirements as the working folder uses this Python; any other gets a virtual environment,
which is kept for the next run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

from local.pulumi.rehearsal import Checkout

LOCK: Final = "requirements.txt"
_OF_A_HOOK: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
)
"""What git sets for its hooks: with the index of a commit in progress, a worktree would replace the commit's files."""
_KEPT: Final = ("HOME", "LANG", "LC_ALL", "NETRC", "PATH", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
_OF_PIP: Final = ("PIP_", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_")
"""What the set-up of a commit sees of the environment: where to install from, and no variable with a key of a cloud."""
Report = Callable[[str], None]


class CheckoutError(Exception):
    """A commit cannot be checked out, or its requirements cannot be installed; the message says what to do."""


def working_folder(project: Path) -> Checkout:
    """The project as it is, with what is not committed."""
    return Checkout(project)


@contextmanager
def checked_out(project: Path, ref: str, report: Report) -> Iterator[Checkout]:
    """A commit of the project's repository, in a worktree that is removed afterwards. Raises CheckoutError."""
    root = Path(_git(project, "rev-parse", "--show-toplevel"))
    commit = _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", of=ref)
    with tempfile.TemporaryDirectory(prefix="cloud-stacks-") as folder:
        tree = Path(folder) / "tree"
        # No hook of the repository runs.
        _git(root, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield _prepared(tree / project.relative_to(root), project, report)
        finally:
            _git(root, "worktree", "remove", "--force", str(tree))


def merge_base(project: Path, ref: str, head: str) -> str:
    """The commit from which both come: what the base branch got since then is not a change of this one."""
    try:
        return _git(project, "merge-base", "--end-of-options", ref, head, of=ref)
    except CheckoutError:
        # A shallow clone may not have it.
        return ref


def prefix(project: Path) -> str:
    """The project's folder, from its repository's root; "" outside of one."""
    try:
        return _git(project, "rev-parse", "--show-prefix")
    except CheckoutError:
        return ""


def _prepared(project: Path, working: Path, report: Report) -> Checkout:
    if not (project / "Pulumi.yaml").exists():
        # The commit is older than the program: it has no stacks.
        return Checkout(project)
    python = _python(project, working, report)
    if not (project / ".venv").exists():
        # Program and policy pack may name it (`virtualenv: ../.venv`).
        (project / ".venv").symlink_to(Path(python).parents[1])
    declared = project / "pyproject.toml"
    if declared.exists() and "entry-points" in declared.read_text():
        # Its own entry points, not those of the checkout that is installed.
        _run([python, "-c", "from setuptools import setup; setup()", "-q", "egg_info"], project)
    return Checkout(project, python)


def _python(project: Path, working: Path, report: Report) -> str:
    lock, ours = project / LOCK, working / LOCK
    if not lock.exists() or (ours.exists() and lock.read_bytes() == ours.read_bytes()):
        # Not resolved: the link in a virtual environment is what makes it one.
        return sys.executable
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = sha256(lock.read_bytes()).hexdigest()[:16]
    venv = _cache() / f"venv-{version}-{digest}"
    if not (venv / "complete").exists():
        report(f"installing the base's {LOCK} into {venv}")
        shutil.rmtree(venv, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(venv)], project)
        _run([str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "-r", str(lock)], project)
        (venv / "complete").touch()
    return str(venv / "bin" / "python")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cloud-stacks"


def _git(folder: Path, *arguments: str, of: str = "") -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        why = done.stderr.strip() or (f"{of!r} is not a commit of {folder}" if of else "git failed")
        hint = "; fetch it first (actions/checkout: `fetch-depth: 0`)" if of and re.search("not a|unknown", why) else ""
        raise CheckoutError(f"{why}{hint}")
    return done.stdout.strip()


def _run(command: Sequence[str], folder: Path) -> None:
    """Run what sets a commit up, which may be code of that commit: it sees no variable with a key of a cloud."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.upper().startswith(_OF_PIP)}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CheckoutError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
