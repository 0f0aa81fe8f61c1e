"""The journal of a run: a file to which lines are appended, so that a killed run loses none.

A line has reached the kernel when `append` returns. The death of the process cannot lose it; a power cut may, because
waiting for the disk at every step would multiply the duration of a run.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Appends to the file, which the first line creates. Not thread-safe: its owner serializes the calls."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def append(self, entry: Any) -> None:
        """Append one entry. Raises OSError, and then the file is unchanged."""
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        line = (json.dumps(entry, separators=(",", ":")) + "\n").encode()
        end = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        except OSError:
            # Half a line followed by other threads' lines would make the whole state unreadable.
            os.ftruncate(self._file, end)
            raise

    def close(self) -> None:
        """Close the file; the next entry opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Delete the file after its entries have been folded into the state."""
        self.close()
        self._path.unlink(missing_ok=True)


def entries(path: Path) -> Iterator[Any]:
    """The entries in order; none if there is no file. Raises ValueError for a line that is not JSON."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    # A run was killed while it wrote what follows the last newline: that step had not started.
    for line in text.split(b"\n")[:-1]:
        if line:
            yield json.loads(line)
