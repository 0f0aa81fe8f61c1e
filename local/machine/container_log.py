"""Reads a container's log: all of it, its last lines, or following its growth."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

POLL_SECONDS = 0.2
CHUNK = 64 * 1024
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def last_lines(text: bytes, count: int) -> bytes:
    """The last lines of a text, whose very last line may be incomplete."""
    return b"".join(_LINE.findall(text)[-count:]) if count else b""


async def read_log(
    log: Path, *, tail: int | None = None, limit: int | None = None, follow: Callable[[], bool] | None = None
) -> AsyncIterator[bytes]:
    """The log from its last `tail` lines on, at most `limit` bytes; continues while `follow` is true.

    Raises FileNotFoundError.
    """
    left = limit
    with log.open("rb") as file:
        chunk = file.read()
        if tail is not None:
            chunk = last_lines(chunk, tail)
        while True:
            if left is not None:
                chunk = chunk[:left]
                left -= len(chunk)
            if chunk:
                yield chunk
            if left == 0:
                return
            goes_on = follow is not None and follow()  # checked first: what came before the end is still read
            chunk = file.read(CHUNK)
            if chunk:
                continue
            if not goes_on:
                return
            if os.fstat(file.fileno()).st_size < file.tell():
                file.seek(0)  # the log was rotated: emptied in place
            await asyncio.sleep(POLL_SECONDS)
