"""One process at a time builds into a folder of the user's cache."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.errors import BuildError, Report


@contextmanager
def building(folder: Path, what: str, report: Report) -> Iterator[None]:
    """Only this process builds into the folder, which is made; says that it waits. Raises BuildError if it may not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
    except OSError as error:
        hint = "set XDG_CACHE_HOME to another folder"
        raise BuildError(f"the cache {folder} is not writable: {error}; {hint}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"another checkout is building {what}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
