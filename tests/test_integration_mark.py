"""What `make test-fast` leaves out, and that `make test` leaves out nothing else but what runs every night."""

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


@pytest.mark.integration
@pytest.mark.parametrize(("target", "marks"), [("test", "not nightly"), ("test-all", "")])
def test_make_leaves_out_only_what_runs_every_night_and_that_not_always(target: str, marks: str) -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # `make test` runs this
    shown = subprocess.run(
        ["make", "-n", target], cwd=ROOT, env=alone, capture_output=True, text=True, check=True
    ).stdout
    [call] = [line for line in shown.splitlines() if " pytest -n 6 " in line]

    assert call.endswith(f' -m "{marks}"')
    assert not re.search(r" (-k|--deselect|--ignore)", call)
