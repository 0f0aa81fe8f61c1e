"""Reading a container's log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from local.machine.container_log import last_lines, read_log


def read(log: Path, **options: Any) -> bytes:
    async def collect() -> bytes:
        return b"".join([chunk async for chunk in read_log(log, **options)])

    return asyncio.run(collect())


@pytest.mark.parametrize(
    "text, count, lines",
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\n\n\n", 2, b"\n\n"),
        (b"a\rb\nc\n", 2, b"a\rb\nc\n"),
        (b"a\n", 5, b"a\n"),
        (b"a\n", 0, b""),
        (b"", 3, b""),
    ],
)
def test_the_last_lines_end_with_the_text(text: bytes, count: int, lines: bytes) -> None:
    assert last_lines(text, count) == lines


def test_a_log_limit_counts_the_shown_bytes(tmp_path: Path) -> None:
    log = tmp_path / "c.log"
    log.write_bytes(b"one\ntwo\nthree\n")

    assert read(log, tail=2, limit=5) == b"two\nt"
    assert read(log, limit=0) == b""
    assert read(log, limit=100) == b"one\ntwo\nthree\n"


def test_a_followed_log_includes_everything_up_to_the_end(tmp_path: Path) -> None:
    log = tmp_path / "c.log"
    log.write_bytes(b"old\nlast\n")
    writes = iter([b"new\n", b"newer\n"])

    def runs() -> bool:
        """The container writes once more each time, the last time as it ends."""
        written = next(writes, None)
        with log.open("ab") as file:
            file.write(written or b"")
        return written == b"new\n"

    assert read(log, tail=1, follow=runs) == b"last\nnew\nnewer\n"


def test_a_log_that_was_rotated_is_followed_from_its_new_beginning(tmp_path: Path) -> None:
    log = tmp_path / "c.log"
    log.write_bytes(b"a long line before\n")
    texts = iter([b"", b"after\n"])

    def runs() -> bool:
        text = next(texts, None)
        if text is not None:
            log.write_bytes(text)  # emptied in its place, then written to
        return text is not None

    assert read(log, follow=runs) == b"a long line before\nafter\n"
