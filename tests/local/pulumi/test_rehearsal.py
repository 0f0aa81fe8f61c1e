"""Runs of the CLI that end together."""

from __future__ import annotations

import os
import sys
import threading
from subprocess import CompletedProcess

import pytest

from local.pulumi.rehearsal import RehearsalError, Runs
from local.waiting import wait_until

pytestmark = pytest.mark.integration


def test_what_runs_is_ended_and_nothing_more_begins() -> None:
    runs, done = Runs(), list[CompletedProcess[str]]()
    call = [sys.executable, "-c", "import time; time.sleep(10_000)"]
    thread = threading.Thread(target=lambda: done.append(runs.run(call, os.environ)))
    thread.start()
    assert wait_until(lambda: bool(runs._running), 60)

    runs.end()

    thread.join(60)
    assert [each.returncode for each in done] == [-15]
    with pytest.raises(RehearsalError):
        runs.run(call, os.environ)
