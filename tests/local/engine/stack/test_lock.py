"""The lock of a stack: one holder at a time; the kernel distinguishes a live holder from a dead one."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.engine.stack.lock import LOCK_FILE, LockedError, StackLock, cancel, check_free, is_held

HOLDS = """
import sys
from pathlib import Path
from local.engine.stack.lock import StackLock
with StackLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


@pytest.mark.integration
def test_the_lock_of_a_killed_holder_is_taken_over_and_the_holder_named(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with pytest.raises(LockedError, match=f"process {process.pid}"), StackLock(tmp_path):
        pass
    assert is_held(tmp_path)
    process.kill()
    process.communicate()

    assert not is_held(tmp_path) and (tmp_path / LOCK_FILE).exists()
    with StackLock(tmp_path) as lock:
        assert lock.taken_over == process.pid
    assert not (tmp_path / LOCK_FILE).exists()


def test_a_live_holder_keeps_the_lock_whatever_the_file_contains(tmp_path: Path) -> None:
    # A changed clock, another container's process ids: neither distinguishes a dead run from a live one.
    with StackLock(tmp_path):
        (tmp_path / LOCK_FILE).write_text("")
        with pytest.raises(LockedError, match="another run is changing this stack"):
            cancel(tmp_path)


def test_a_locked_stack_is_an_error_that_names_the_holder_its_operation_and_start(tmp_path: Path) -> None:
    reported = (
        rf"another run \(process {os.getpid()}: `up` since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\) is changing this stack"
    )
    with StackLock(tmp_path, "up"), pytest.raises(LockedError, match=reported):
        check_free(tmp_path)


def test_an_unlocked_stack_is_free(tmp_path: Path) -> None:
    check_free(tmp_path / "never-made")
    with StackLock(tmp_path, "up"):
        pass
    (tmp_path / LOCK_FILE).write_text('{"pid": 1}')

    check_free(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": null}'])
def test_a_lock_file_without_a_holder_does_not_lock(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_FILE).write_text(text)
    with StackLock(tmp_path) as lock:
        assert lock.taken_over is None


def test_checking_the_lock_does_not_block_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = os.open(tmp_path / LOCK_FILE, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(looking, fcntl.LOCK_SH)
    # It has checked within the pause.
    monkeypatch.setattr("local.engine.stack.lock.sleep", lambda _: os.close(looking))
    with StackLock(tmp_path):
        assert is_held(tmp_path)


def _counts(directory: Path, rounds: int) -> None:
    counter = directory / "counter"
    done = 0
    while done < rounds:
        try:
            with StackLock(directory):
                counter.write_text(str(int(counter.read_text()) + 1))
                done += 1
        except LockedError:
            os.sched_yield()


@pytest.mark.integration
def test_only_one_of_many_runs_has_the_lock_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_counts, args=(tmp_path, 200)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert (tmp_path / "counter").read_text() == "600"
