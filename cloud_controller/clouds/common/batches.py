"""Splits what many resources need into calls, each with at most as many as the cloud's API takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(things: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """The things in their order, at most `most` in each batch."""
    return (things[start : start + most] for start in range(0, len(things), most))
