"""Each module of whole-stack tests gets a site of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.blocks import BlockRegistry, default_registry
from tests.e2e.local_stack import ROOT, LocalStack


@pytest.fixture(scope="module")
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for a site of the module's own. A site that the tests leave is stopped, its addresses released."""
    state = tmp_path_factory.mktemp("site")
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


@pytest.fixture(scope="module")
def empty_stack(state_folder: Path) -> LocalStack:
    """Stack `local`, not up yet."""
    return LocalStack.copied(state_folder, "local")
