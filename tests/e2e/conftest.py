"""Each module of whole-stack tests gets a site of its own, but for those that share one (tests/distribution.py)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.blocks import BlockRegistry, default_registry
from tests.e2e.local_stack import ROOT, LocalStack


@pytest.fixture(scope="module")
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for a site of the module's own. A site that the tests leave is stopped, its addresses released."""
    with _stopped_afterwards(tmp_path_factory.mktemp("site")) as state:
        yield state


@pytest.fixture(scope="module")
def empty_stack(state_folder: Path) -> LocalStack:
    """Stack `local`, not up yet."""
    return LocalStack.copied(state_folder, "local")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for the site of `shared_stack`."""
    with _stopped_afterwards(tmp_path_factory.mktemp("site")) as state:
        yield state


@pytest.fixture(scope="module")
def shared_stack(shared_folder: Path) -> LocalStack:
    """Stack `local`, up, for modules that leave no objects in it, or take it down.

    Changes of addresses wait for an acknowledgement, and pods of an annotated Service get readiness gates.
    """
    stack = LocalStack.copied(shared_folder, "local")
    stack.configure("addressChanges", "acknowledge")
    stack.configure("readinessGates", "inject")
    # In the site's own folder, which `down` removes.
    succeeded = shared_folder / "mycloud" / "up-succeeded"
    if not succeeded.exists():
        stack.run("up")
        succeeded.touch()
    return stack


@contextmanager
def _stopped_afterwards(state: Path) -> Iterator[Path]:
    yield state
    subprocess.run(
        [sys.executable, "-m", "local", "stop", "--state", str(state)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    # The folder stays for the analysis of a failure.
    BlockRegistry(default_registry()).release(state)
