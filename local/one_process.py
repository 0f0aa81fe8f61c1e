"""Work that one process at a time does, in a folder that several know."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.errors import BuildError, Report


@contextmanager
def alone(folder: Path, work: str, report: Report) -> Iterator[None]:
    """Only this process does the work, such as `building etcd`, in the folder, which is made; says if it must wait.

    Raises BuildError if the folder is not writable.
    """
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
            report(f"another checkout is {work}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
