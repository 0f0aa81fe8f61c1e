"""One run at a time changes a stack: a lock file with the holder's process id and start time.

A holder that is gone, or whose process id belongs to a younger process, left the file behind when it was killed; the
next run takes the lock over.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType

import psutil

LOCK_FILE = "lock.json"


class LockedError(Exception):
    """Another run, which is alive, holds the lock; the message says which."""


def cancel(directory: Path) -> int | None:
    """Take away a dead run's lock; returns that run's process id, or None if there was no lock.

    Raises LockedError for a run that is alive: only who runs it knows what it is in the middle of.
    """
    return _clear_dead(directory / LOCK_FILE)


def is_held(directory: Path) -> bool:
    """Whether a run that is alive changes the stack. Raises LockedError for what is no lock file."""
    holder = _holder(directory / LOCK_FILE)
    return holder is not None and _lives(*holder)


class StackLock:
    """A context manager that holds the stack's lock. `taken_over` tells of a holder that had been killed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_FILE
        self.taken_over: int | None = None

    def __enter__(self) -> StackLock:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        mine = {"pid": os.getpid(), "started": psutil.Process().create_time()}
        # Linking a complete file is atomic, as is removing a dead holder's by its own content: no window in between
        # lets two runs believe that they hold it.
        candidate = self._path.with_name(f"{LOCK_FILE}.{os.getpid()}")
        candidate.write_text(json.dumps(mine))
        try:
            while True:
                try:
                    os.link(candidate, self._path)
                    return self
                except FileExistsError:
                    self.taken_over = _clear_dead(self._path) or self.taken_over
        finally:
            candidate.unlink()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)


def _clear_dead(path: Path) -> int | None:
    holder = _holder(path)
    if holder is None:
        return None
    pid, started = holder
    if _lives(pid, started):
        raise LockedError(
            f"another run (process {pid}) is changing this stack; wait for it, or end it with Ctrl-C where it runs"
        )
    dead = path.with_name(f"{LOCK_FILE}.dead.{os.getpid()}")
    try:
        # Of two runs that find the same dead holder, one renames its file.
        path.rename(dead)
    except FileNotFoundError:
        return None
    dead.unlink()
    return pid


def _holder(path: Path) -> tuple[int, float] | None:
    try:
        holder = json.loads(path.read_text())
        return int(holder["pid"]), float(holder["started"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise LockedError(f"{path} is not a lock file; remove it if no run is going on") from error


def _lives(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
