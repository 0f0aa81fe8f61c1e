"""Allows one run at a time to change a stack: the kernel keeps a lock file locked while its holder lives.

The file names the process. A file without a holder was left by a killed run; the next run takes it over.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from time import sleep, strftime
from types import TracebackType

LOCK_FILE = "lock.json"
LOOK_SECONDS = 0.01
"""How long a starting run waits for one that only checks the lock."""


class LockedError(Exception):
    """Another live run holds the lock; the message names it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder named in a lock file: the process, its operation and its start, for people."""

    pid: int
    operation: str = ""
    since: str = ""

    def __str__(self) -> str:
        return f"process {self.pid}" + (f": `{self.operation}` since {self.since}" if self.operation else "")

    @classmethod
    def this(cls, operation: str) -> Holder:
        """This process, from now on."""
        return cls(os.getpid(), operation, strftime("%Y-%m-%d %H:%M:%S"))

    @classmethod
    def read(cls, file: int) -> Holder | None:
        """The holder named in an open lock file; None if there is none."""
        try:
            found = json.loads(os.pread(file, 4096, 0))
            return cls(int(found["pid"]), str(found.get("operation", "")), str(found.get("since", "")))
        except (ValueError, KeyError, TypeError):
            # The other run was killed, or has not written yet, after it created the file.
            return None

    def write(self, file: int) -> None:
        """Write it into an open lock file, replacing the previous holder."""
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(asdict(self)).encode(), 0)


def check_free(directory: Path) -> None:
    """Raise LockedError if a live run is changing the stack. Takes no lock: for checks before a long wait."""
    try:
        file = os.open(directory / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        if not _is_shared(file):
            raise _locked_by(Holder.read(file))
    finally:
        os.close(file)


def cancel(directory: Path) -> int | None:
    """Remove a dead run's lock; returns that run's process id, or None if there was no lock.

    Raises LockedError for a live run: ending it is up to the person who started it.
    """
    path = directory / LOCK_FILE
    if not path.exists():
        return None
    file = _acquire(path)
    dead = Holder.read(file)
    _release(file, path)
    return dead.pid if dead is not None else None


def is_held(directory: Path) -> bool:
    """Whether a live run is changing the stack."""
    try:
        check_free(directory)
    except LockedError:
        return True
    return False


class StackLock:
    """A context manager that holds the stack's lock for an operation.

    `taken_over` is the process id of a killed holder.
    """

    def __init__(self, directory: Path, operation: str = "") -> None:
        self._path = directory / LOCK_FILE
        self._operation = operation
        self._file = -1
        self.taken_over: int | None = None

    def __enter__(self) -> StackLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _acquire(self._path)
        dead = Holder.read(self._file)
        self.taken_over = dead.pid if dead is not None else None
        Holder.this(self._operation).write(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _release(self._file, self._path)


def _acquire(path: Path) -> int:
    """The file, created if needed and locked. Raises LockedError."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            looked_at, holder = _is_shared(file), Holder.read(file)
            os.close(file)
            if looked_at:
                sleep(LOOK_SECONDS)
                continue
            raise _locked_by(holder) from None
        try:
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except FileNotFoundError:
            pass
        # Its holder removed it meanwhile: other runs would not find the file that is locked here.
        os.close(file)


def _locked_by(holder: Holder | None) -> LockedError:
    who = f" ({holder})" if holder is not None else ""
    return LockedError(f"another run{who} is changing this stack; wait for it, or press Ctrl-C where it runs")


def _is_shared(file: int) -> bool:
    """Whether the lock is held only by processes that check it with a shared lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _release(file: int, path: Path) -> None:
    path.unlink(missing_ok=True)
    os.close(file)
