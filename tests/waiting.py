"""Waiting for what happens in its own time: never for a time, always for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.02
_LONGEST_POLL_SECONDS = 0.5
_SHARE = 8
"""A wait uses at most about this part of a core: most tests share two with what they wait for."""


def eventually(condition: Callable[[], T], what: str, patience: float = 60) -> T:
    """Wait until the condition is true, for `patience` seconds at most, and give its value; `what` tells of it."""
    deadline = time.monotonic() + patience
    while True:
        began = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        assert now < deadline, f"not within {patience:g} s: {what}; last seen: {value!r}"
        time.sleep(min(_LONGEST_POLL_SECONDS, max(_POLL_SECONDS, _SHARE * (now - began))))
