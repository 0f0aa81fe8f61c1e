"""Processes are started detached, found again by their records, and stopped without touching any other."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from local import processes
from local.processes import Process, ProcessError
from tests.waiting import eventually

pytestmark = pytest.mark.integration

Start = Callable[..., Process]
SECONDS = 60
"""For what must happen."""

STUBBORN = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"
# pthread_exit in the first thread: /proc says zombie, but the process goes on.
LEADERLESS = (
    "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(600,)).start()\n"
    "print('leader ends', flush=True); ctypes.PyDLL(None).pthread_exit(None)"
)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Process] = []

    def start_one(*argv: str, name: str = "sleeper", **options: object) -> Process:
        process = processes.start(
            name,
            argv or ("sleep", "600"),
            record=tmp_path / "processes" / f"{name}.json",
            log=tmp_path / "logs" / f"{name}.log",
            **options,  # type: ignore[arg-type]
        )
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.signal(signal.SIGKILL)
        process.wait(SECONDS)


def test_a_started_process_leads_a_session_of_its_own_and_is_found_by_its_record(start: Start) -> None:
    process = start()

    assert os.getsid(process.pid) == process.pid
    assert processes.find(process.record) == process
    assert processes.find_all(process.record.parent) == [process]


def test_a_process_is_recorded_even_if_its_starter_is_killed_at_once(tmp_path: Path) -> None:
    record = tmp_path / "orphan.json"
    program = (
        "import os, signal, sys; from pathlib import Path; from local import processes\n"
        "processes.start('orphan', ['sleep', '600'], record=Path(sys.argv[1]), log=Path(sys.argv[2]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    starter = subprocess.run([sys.executable, "-c", program, record, tmp_path / "log"], check=False)

    orphan = processes.find(record)

    assert starter.returncode == -signal.SIGKILL
    assert orphan is not None
    assert orphan.stop(SECONDS)


def test_a_process_being_started_is_found_even_if_its_starter_is_killed(tmp_path: Path) -> None:
    record, begun, go_on = (tmp_path / name for name in ("orphan.json", "begun", "go-on"))
    move = tmp_path / "bin" / "mv"
    move.parent.mkdir()
    move.write_text(f'#!/bin/sh\n: > {begun}\nwhile [ ! -e {go_on} ]; do /bin/sleep 0.02; done\nexec /bin/mv "$@"\n')
    move.chmod(0o700)
    program = (
        "import sys; from pathlib import Path; from local import processes\n"
        "processes.start('orphan', ['sleep', '600'], record=Path(sys.argv[1]), log=Path(sys.argv[2]),"
        " env={'PATH': sys.argv[3]})"
    )
    with subprocess.Popen([sys.executable, "-c", program, record, tmp_path / "log", move.parent]) as starter:
        eventually(begun.exists, "it is about to be recorded", SECONDS)
        starter.kill()

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(processes.find, record)
        go_on.touch()
        orphan = found.result(SECONDS)

    assert orphan is not None
    assert orphan.stop(SECONDS)


def test_a_new_record_is_not_removed_as_the_stale_one_that_it_replaced(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = start()
    ended.signal(signal.SIGKILL)
    assert ended.wait(SECONDS)
    unlink, starts = Path.unlink, list[Future[Process]]()

    with ThreadPoolExecutor(1) as pool:

        def slowly(path: Path, missing_ok: bool = False) -> None:
            if path == ended.record and not starts:
                starts.append(pool.submit(start))
                wait(starts, 0.5)  # the other would intervene here without the lock
            unlink(path, missing_ok=missing_ok)

        monkeypatch.setattr(Path, "unlink", slowly)
        processes.find(ended.record)
        new = starts[0].result(SECONDS)

    assert processes.find(ended.record) == new


def test_a_process_paused_at_its_start_does_not_block_the_folder(start: Start) -> None:
    # Many times: one in some hundreds held the folder of records, on a busy machine.
    for _ in range(100):
        process = start()
        process.signal(signal.SIGSTOP)
        folder = os.open(process.record.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(folder)
            process.signal(signal.SIGKILL)
            assert process.wait(SECONDS)


def test_a_process_that_ends_on_sigterm_loses_its_record(start: Start) -> None:
    process = start()

    assert process.stop(grace_seconds=SECONDS)
    assert not process.is_running()
    assert not process.record.exists()
    assert process.stop(grace_seconds=10), "stopping what has ended is no error"


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(start: Start) -> None:
    process = start(sys.executable, "-c", STUBBORN)
    wait_for_log(process, "up")

    assert not process.stop(grace_seconds=0.2)
    assert not process.is_running()


def test_a_process_whose_first_thread_ended_runs_until_the_others_ended(start: Start) -> None:
    process = start(sys.executable, "-c", LEADERLESS)
    wait_for_log(process, "leader ends")

    assert process.is_running()
    assert not process.wait(0.2)


def test_stopping_a_process_stops_its_session(start: Start) -> None:
    process = start("sh", "-c", "sleep 600 & echo child $!; trap 'exit 0' TERM; wait")
    child = int(wait_for_log(process, "child ").split()[1])

    process.stop(grace_seconds=SECONDS)

    assert has_ended(child)


def test_a_record_whose_process_ended_is_stale_and_removed(start: Start) -> None:
    process = start()
    process.signal(signal.SIGKILL)
    assert process.wait(SECONDS)

    assert processes.find(process.record) is None
    assert not process.record.exists()


@pytest.mark.parametrize("field, value", [("start_ticks", 1), ("boot_id", "another-boot")])
def test_a_reused_pid_is_not_mistaken_for_the_recorded_process(start: Start, field: str, value: object) -> None:
    bystander = start()
    fields = json.loads(bystander.record.read_text()) | {field: value}
    bystander.record.write_text(json.dumps(fields))
    mistaken = processes.load(bystander.record)
    assert mistaken is not None

    mistaken.stop(grace_seconds=1)

    assert processes.find(bystander.record) is None
    assert bystander.is_running()


def test_an_unreaped_dead_child_is_not_running(start: Start) -> None:
    process = start("true")
    # Wait for its end without reaping it.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert not process.is_running()
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)


def test_a_second_start_under_the_same_record_is_refused(start: Start) -> None:
    start()

    with pytest.raises(ProcessError, match="sleeper is already running"):
        start()


def test_a_missing_executable_is_named(start: Start) -> None:
    with pytest.raises(ProcessError, match="no executable /no/such/program"):
        start("/no/such/program")


def test_output_goes_to_a_private_log(start: Start) -> None:
    process = start("sh", "-c", "echo out; echo err >&2")
    assert process.wait(SECONDS)

    assert process.log_tail().splitlines() == ["out", "err"]
    assert process.log.stat().st_mode & 0o777 == 0o600


def test_the_environment_is_the_given_one_and_arguments_are_taken_literally(start: Start) -> None:
    process = start("sh", "-c", 'echo "$COLOUR $1"', "sh", "$(id) 'x' \"y\"", env={"COLOUR": "red"})
    assert process.wait(SECONDS)

    assert process.log_tail() == "red $(id) 'x' \"y\""


def wait_for_log(process: Process, text: str) -> str:
    """The first line with this text; the process writes it by itself."""

    def written() -> str | None:
        ended = process.wait(0)
        line = next((line for line in process.log.read_text().splitlines() if text in line), None)
        assert line is not None or not ended, process.log_tail()
        return line

    return eventually(written, f"{process.name} writes {text!r}", SECONDS) or ""


def has_ended(pid: int) -> bool:
    """Whether a process that is not our child ends."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        return bool(poll.poll(SECONDS * 1000))
    finally:
        os.close(pidfd)
