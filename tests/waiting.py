"""Waiting for what happens in its own time: never for a time, always for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str, patience: float = 60) -> T:
    """Wait until the condition is true, for `patience` seconds at most, and give its value; `what` tells of it."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {patience:g} s: {what}; last seen: {value!r}"
        time.sleep(0.02)
    return value
