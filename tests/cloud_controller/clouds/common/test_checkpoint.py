"""What is kept for a restart comes back whole, or not at all."""

from __future__ import annotations

import random
import zlib

import pytest

from cloud_controller.clouds.common.checkpoint import packed, unpacked, without_largest

CONTENT = {"format": 1, "known": {"lb-1": ["i-1", "i-2"]}}
WRITTEN = packed(1, CONTENT)
DAMAGED = {
    "nothing": b"",
    "words": b"no memory",
    "noise": random.Random(1).randbytes(200),
    "cut off": WRITTEN[:-1],
    "one byte changed": WRITTEN.replace(b"x", b"y", 1),
    "brackets": zlib.compress(b"[" * 100_000),
    "no text": zlib.compress(b"\xff"),
    "no version": zlib.compress(b"{}"),
    "another version": packed(2, {}),
    "other content": packed(1, {"known": ["lb-1"]}),
}


@pytest.mark.parametrize("written", [WRITTEN, zlib.compress(b'{"format": 1, "known": {"lb-1": ["i-1", "i-2"]}}')])
def test_what_is_packed_is_unpacked(written: bytes) -> None:
    with unpacked(1, written) as content:
        assert content == CONTENT


@pytest.mark.parametrize("written", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_or_of_another_version_is_refused(written: bytes) -> None:
    with pytest.raises(ValueError, match="damaged or of another version"), unpacked(1, written) as content:
        content["known"]["lb-1"]


def test_the_largest_are_left_out_until_the_rest_fits() -> None:
    assert without_largest(range(100), bytes, limit=99) == bytes(range(90))
    assert without_largest(range(3), bytes, limit=1) == bytes(range(1))
    assert without_largest(range(3), lambda left: b"head" + bytes(left), limit=3) is None
