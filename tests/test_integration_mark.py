"""What `make test-fast` leaves out, and that `make test` selects no tests."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_a_test_without_the_mark_cannot_start_a_process() -> None:
    with pytest.raises(AssertionError, match=r"test_a_test_without_the_mark_cannot_start_a_process.* `integration`"):
        subprocess.run(["true"], check=True)
    with pytest.raises(AssertionError, match="starts a process"):
        os.posix_spawn("/bin/true", ["true"], {})


def test_a_test_without_the_mark_cannot_start_a_simulated_aws() -> None:
    from tests.moto_server import moto_server  # its import takes a second

    with pytest.raises(AssertionError, match="starts moto"), moto_server():
        pass


@pytest.mark.integration
def test_a_test_with_the_mark_may_start_a_process() -> None:
    subprocess.run(["true"], check=True)


def test_make_test_selects_no_tests() -> None:
    test = re.search(r"^tests-alone:\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert test is not None

    assert " pytest " in test[1]
    assert not re.search(r" (-m (?!pytest)|-k|--deselect|--ignore)", test[1])
