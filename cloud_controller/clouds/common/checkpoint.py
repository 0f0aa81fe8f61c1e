"""What a cloud remembers as the bytes of a checkpoint that outlives the process, and back. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

T = TypeVar("T")

_MOST_EXPANDED = 256 * 1024 * 1024
"""The largest expanded size in bytes of a checkpoint, which others may be able to write."""


def packed(version: int, content: Mapping[str, Any]) -> bytes:
    """The content, of this version of its format; the same bytes for the same content."""
    return zlib.compress(orjson.dumps({"format": version, **content}, option=orjson.OPT_SORT_KEYS))


def without_largest(by_size: Sequence[T], write: Callable[[list[T]], bytes], limit: int) -> bytes | None:
    """`write` of all or, above `limit` bytes, without the largest, which are last; None if that of none is above it."""
    left = [*by_size]
    while len(written := write(left)) > limit and left:
        # Each round drops a tenth; one round is usually enough.
        del left[-max(1, len(left) // 10) :]
    return written if len(written) <= limit else None


@contextmanager
def unpacked(version: int, written: bytes) -> Iterator[Any]:
    """The content, to be read inside. Raises ValueError if it turns out to be damaged or of another version."""
    try:
        stream = zlib.decompressobj()
        content = orjson.loads(stream.decompress(written, _MOST_EXPANDED))
        if not stream.eof:
            raise ValueError("it ends too early")
        if content["format"] != version:
            raise ValueError(f"unknown format {content['format']!r}")
        yield content
    except (zlib.error, LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"the data is damaged or of another version: {type(error).__name__}: {error}") from error
