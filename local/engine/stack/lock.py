"""One run at a time changes a stack: a lock file that the kernel keeps locked for its holder, as long as that lives.

The file says which process it is. One that nobody holds was left by a run that was killed; the next run takes it over.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType

LOCK_FILE = "lock.json"
LOOK_SECONDS = 0.01
"""How long a run that begins leaves to somebody who only looks whether there is one."""


class LockedError(Exception):
    """Another run, which is alive, holds the lock; the message says which."""


def cancel(directory: Path) -> int | None:
    """Take away a dead run's lock; returns that run's process id, or None if there was no lock.

    Raises LockedError for a run that is alive: only who runs it knows what it is in the middle of.
    """
    path = directory / LOCK_FILE
    if not path.exists():
        return None
    file = _acquire(path)
    dead = _holder(file)
    _release(file, path)
    return dead


def is_held(directory: Path) -> bool:
    """Whether a run that is alive changes the stack."""
    try:
        file = os.open(directory / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


class StackLock:
    """A context manager that holds the stack's lock. `taken_over` tells of a holder that had been killed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_FILE
        self._file = -1
        self.taken_over: int | None = None

    def __enter__(self) -> StackLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _acquire(self._path)
        self.taken_over = _holder(self._file)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps({"pid": os.getpid()}).encode(), 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _release(self._file, self._path)


def _acquire(path: Path) -> int:
    """The file, made if need be and locked. Raises LockedError."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            looked_at, holder = _is_looked_at(file), _holder(file)
            os.close(file)
            if looked_at:
                time.sleep(LOOK_SECONDS)
                continue
            process = f" (process {holder})" if holder is not None else ""
            raise LockedError(
                f"another run{process} is changing this stack; wait for it, or end it with Ctrl-C where it runs"
            ) from None
        try:
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except FileNotFoundError:
            pass
        # Whoever held it took it away meanwhile: what is locked here is no longer what others would find.
        os.close(file)


def _is_looked_at(file: int) -> bool:
    """Whether it is only `is_held` that has the lock, which shares it."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _release(file: int, path: Path) -> None:
    path.unlink(missing_ok=True)
    os.close(file)


def _holder(file: int) -> int | None:
    try:
        return int(json.loads(os.pread(file, 4096, 0))["pid"])
    except (ValueError, KeyError, TypeError):
        # Killed, or not yet come, between making the file and writing into it.
        return None
