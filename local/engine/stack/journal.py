"""The journal of a run: a file to which lines are appended, so that a run that is killed loses none.

A line is in the kernel's hands when `append` returns. The death of the process, however sudden, cannot take it back; a
power cut may, for to wait for the disk at every step would make a run several times as long.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Appends to the file, which is made by the first line. Not safe from several threads: its owner sees to that."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def append(self, entry: Any) -> None:
        """Write one entry. Raises OSError, and then the file is as it was."""
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        line = (json.dumps(entry, separators=(",", ":")) + "\n").encode()
        end = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        except OSError:
            # Half a line in the middle, with other threads' lines after it, would make the whole state unreadable.
            os.ftruncate(self._file, end)
            raise

    def close(self) -> None:
        """Let go of the file; the next entry opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Delete the file: what it tells stands in the state now."""
        self.close()
        self._path.unlink(missing_ok=True)


def entries(path: Path) -> Iterator[Any]:
    """What was written, in its order; nothing if there is no file. Raises ValueError for a line that is not JSON."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    # What follows the last newline was being written when the run was killed: its step had not begun.
    for line in text.split(b"\n")[:-1]:
        if line:
            yield json.loads(line)
