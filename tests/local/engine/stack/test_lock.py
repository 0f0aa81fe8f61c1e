"""The lock of a stack: one at a time, the living from the dead told by the kernel."""

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


def test_a_killed_holder_is_taken_over_and_named(tmp_path: Path) -> None:
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


def test_a_holder_lives_whatever_the_file_says(tmp_path: Path) -> None:
    # A clock that is set anew, another container's process ids: nothing of that tells a dead run from a living one.
    with StackLock(tmp_path):
        (tmp_path / LOCK_FILE).write_text("")
        with pytest.raises(LockedError, match="another run is changing this stack"):
            cancel(tmp_path)


def test_a_run_that_would_have_to_wait_is_told_who_holds_the_lock_what_it_does_and_since_when(tmp_path: Path) -> None:
    told = rf"another run \(process {os.getpid()}: `up` since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\) is changing this stack"
    with StackLock(tmp_path, "up"), pytest.raises(LockedError, match=told):
        check_free(tmp_path)


def test_a_stack_that_nobody_holds_is_free(tmp_path: Path) -> None:
    check_free(tmp_path / "never-made")
    with StackLock(tmp_path, "up"):
        pass
    (tmp_path / LOCK_FILE).write_text('{"pid": 1}')

    check_free(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": null}'])
def test_a_file_that_nobody_holds_locks_nobody_out(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_FILE).write_text(text)
    with StackLock(tmp_path) as lock:
        assert lock.taken_over is None


def test_whoever_only_looks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looking = os.open(tmp_path / LOCK_FILE, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(looking, fcntl.LOCK_SH)
    # In the pause that is left to it, it has looked.
    monkeypatch.setattr("local.engine.stack.lock.time.sleep", lambda _: os.close(looking))
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


def test_of_many_that_want_it_one_has_it_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_counts, args=(tmp_path, 200)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert (tmp_path / "counter").read_text() == "600"
