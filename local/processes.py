"""Starts the local site's processes detached, finds them again after a crash, and stops them.

A process is identified by its record, a JSON file with its pid, its start time and its boot. Pid and start time
together are unique within a boot, so a reused pid is never mistaken for ours. The child writes the record itself, just
before it execs the command: even if its starter is killed, no process of ours runs unrecorded.

The starter locks the folder of records until the record exists, and the lock survives the starter's death. Otherwise
another process could delete the new record as a stale one, or look before it exists.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOG_ROTATE_BYTES = 16 * 1024 * 1024
KILL_DEADLINE_SECONDS = 10.0

# $1 is the record, $2 its JSON without the last two fields, $3 the working directory; the command follows. Start time
# is field 22 of /proc/PID/stat: the 20th after the command's name, which ends with the last parenthesis. exec keeps pid
# and start time. Closing descriptor 3 tells the starter that the record exists. Descriptor 4 is the lock on the folder;
# it is released first, and in a command of its own because shells keep copies until a command ends: the starter may
# stop this process (SIGSTOP) at once, and the lock would then stay taken.
_RECORD_AND_EXEC = """\
record=$1 fields=$2
cd -- "$3" || exit 127
shift 3
start_ticks() { ticks=${20}; }
read -r stat < /proc/$$/stat && start_ticks ${stat##*) } || exit 127
umask_before=$(umask)
umask 077
printf '%s, "pid": %s, "start_ticks": %s}\\n' "$fields" "$$" "$ticks" > "$record.new" || exit 127
mv -f -- "$record.new" "$record" || exit 127
umask "$umask_before"
exec 4>&-
exec 3>&-
exec "$@"
"""


class ProcessError(Exception):
    """A process could not be started or stopped; the message says which one, why, and where its log is."""


@dataclass(frozen=True, slots=True)
class Process:
    """One started process. The object stays valid after the process has ended; `is_running` is then false."""

    name: str
    argv: tuple[str, ...]
    pid: int
    start_ticks: int
    boot_id: str
    log: Path
    record: Path

    def is_running(self) -> bool:
        """Whether this process still runs. A zombie does not; it is reaped if it is our child."""
        pidfd = self._open_pidfd()
        if pidfd is None:
            return False
        os.close(pidfd)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the process to end; returns whether it did."""
        pidfd = self._open_pidfd()
        if pidfd is None:
            return True
        try:
            return self._wait(pidfd, seconds)
        finally:
            os.close(pidfd)

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False if the process has ended. Never reaches another process that reuses the pid."""
        pidfd = self._open_pidfd()
        if pidfd is None:
            return False
        try:
            return _send(pidfd, number)
        finally:
            os.close(pidfd)

    def stop(self, grace_seconds: float) -> bool:
        """Send SIGTERM, after `grace_seconds` SIGKILL, then kill the rest of its session and remove the record.

        Returns whether it ended by itself in time. Stopping an ended process is allowed. Raises ProcessError if it
        survives SIGKILL (it hangs in the kernel).
        """
        graceful = True
        pidfd = self._open_pidfd()
        if pidfd is not None:
            try:
                _send(pidfd, signal.SIGTERM)
                if not self._wait(pidfd, grace_seconds):
                    graceful = False
                    _send(pidfd, signal.SIGKILL)
                    if not self._wait(pidfd, KILL_DEADLINE_SECONDS):
                        raise ProcessError(f"{self.name} (pid {self.pid}) does not end, not even after SIGKILL")
            finally:
                os.close(pidfd)
            self._kill_session()
        with _held(self.record.parent):
            if load(self.record) == self:  # not a newer process's
                self.record.unlink(missing_ok=True)
        return graceful

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of its log, for error messages."""
        return log_tail(self.log, lines)

    def _open_pidfd(self) -> int | None:
        """A descriptor for this very process, or None if it has ended."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        # Check again: from here on the descriptor identifies one process, whatever happens to the pid. It also detects
        # a zombie, and only once all threads have ended; /proc reports a process as a zombie when its first thread has
        # ended, while others may still hold ports.
        if self.boot_id == _boot_id() and _start_ticks(self.pid) == self.start_ticks and not self._wait(pidfd, 0):
            return pidfd
        os.close(pidfd)
        return None

    def _wait(self, pidfd: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        ended = bool(poll.poll(max(0, round(seconds * 1000))))
        if ended:
            _reap(self.pid)
        return ended

    def _kill_session(self) -> None:
        """Kill the descendants that the process left in its session."""
        for pid in _all_pids():
            try:
                if pid != self.pid and os.getsid(pid) == self.pid:
                    os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue  # it has ended, or belongs to another user


def start(
    name: str,
    argv: Sequence[str],
    *,
    record: Path,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Process:
    """Start a command in a session of its own with its output appended to `log`; returns once it is recorded.

    `env` is the whole environment (default: this process's); `find` looks for the process at `record`. Secrets belong
    in files or `env`, never in `argv`. Raises ProcessError if the command cannot be run or already runs.
    """
    executable = shutil.which(argv[0])
    if executable is None:
        raise ProcessError(f"{name} could not be started: there is no executable {argv[0]}")
    record.parent.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    fields = {"name": name, "argv": list(argv), "log": str(log.absolute()), "boot_id": _boot_id()}
    command = [
        *("/bin/sh", "-c", _RECORD_AND_EXEC, "sh"),
        *(str(record.absolute()), json.dumps(fields)[:-1], str((cwd or Path.cwd()).absolute())),
        *(executable, *argv[1:]),
    ]
    with _held(record.parent) as hold:
        running = load(record)
        if running is not None and running.is_running():
            raise ProcessError(f"{name} is already running (pid {running.pid})")
        pid = _spawn(command, dict(os.environ if env is None else env), log, hold)
        process = load(record)
    if process is None or process.pid != pid:
        _reap(pid, block=True)
        raise ProcessError(f"{name} could not be started:\n{log_tail(log)}")
    return process


def find(record: Path) -> Process | None:
    """The running process that `record` identifies, or None. Removes the record of an ended process."""
    with _held(record.parent):
        process = load(record)
        if process is None or process.is_running():
            return process
        record.unlink(missing_ok=True)
    return None


def find_all(directory: Path) -> list[Process]:
    """The running processes with a record in `directory`, by name."""
    with _held(directory):
        pass  # a starter that holds the lock writes its record
    found = (find(record) for record in sorted(directory.glob("*.json")))
    return [process for process in found if process is not None]


def load(record: Path) -> Process | None:
    """The process that a record identifies, running or not; None if there is no record."""
    try:
        fields = json.loads(record.read_text())
        return Process(
            name=fields["name"],
            argv=tuple(fields["argv"]),
            pid=fields["pid"],
            start_ticks=fields["start_ticks"],
            boot_id=fields["boot_id"],
            log=Path(fields["log"]),
            record=record,
        )
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise ProcessError(f"{record} is not a process record: {error!r}") from error


def log_tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, or a note that there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 256 * lines))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or f"({log} is empty)"


def _start_ticks(pid: int) -> int | None:
    """A process's start time in clock ticks since boot; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(text.rpartition(")")[2].split()[19])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _all_pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _spawn(command: list[str], env: dict[str, str], log: Path, hold: int | None) -> int:
    """Start the recording shell and wait until it has recorded itself or failed; returns the pid.

    The shell holds the folder's lock, too, until then.
    """
    if log.exists() and log.stat().st_size > LOG_ROTATE_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    taken_over, handle = os.pipe()
    # Not 3: that descriptor is overwritten first.
    hold = None if hold is None else fcntl.fcntl(hold, fcntl.F_DUPFD_CLOEXEC, 5)
    try:
        # posix_spawn because a fork with many threads is unsafe; every descriptor that Python opens is close-on-exec.
        # Python ignores SIGPIPE and SIGXFSZ, which the command must not inherit.
        pid = os.posix_spawn(
            command[0],
            command,
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
                (os.POSIX_SPAWN_DUP2, handle, 3),
                *([] if hold is None else [(os.POSIX_SPAWN_DUP2, hold, 4)]),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    finally:
        for descriptor in (output, handle, *([] if hold is None else [hold])):
            os.close(descriptor)
    with os.fdopen(taken_over, "rb") as pipe:
        pipe.read()
    return pid


def _send(pidfd: int, number: signal.Signals) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    return True


def _reap(pid: int, *, block: bool = False) -> None:
    """Collect an ended child so that it does not stay a zombie; other processes are ignored."""
    try:
        os.waitpid(pid, 0 if block else os.WNOHANG)
    except ChildProcessError:
        return  # its own parent, or init, collects it


@contextmanager
def _held(directory: Path) -> Iterator[int | None]:
    """Prevent every other process from starting or removing processes recorded in this folder.

    Yields the descriptor of the lock, or None if the folder does not exist.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
