"""Every module of whole-stack tests gets a site of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.local_stack import ROOT, LocalStack


@pytest.fixture(scope="module")
def empty_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """A stack that is not up yet. Whatever the test leaves is taken down."""
    state = tmp_path_factory.mktemp("site")
    stack_file = state / "input" / "Pulumi.local.yaml"
    stack_file.parent.mkdir()
    shutil.copy(ROOT / "stacks" / "Pulumi.local.yaml", stack_file)
    stack = LocalStack(state, stack_file)
    yield stack
    subprocess.run(
        [sys.executable, "-m", "local", "stop", "--state", str(state)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
