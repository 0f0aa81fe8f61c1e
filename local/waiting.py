"""Waiting for a condition that another process brings about, with a line for people where that takes long."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_SECONDS = 0.05
QUIET_SECONDS = 2.0
"""A longer wait is reported."""

Tell = Callable[[str], None]
"""Takes a line for a person."""


def to_nobody(line: str) -> None:
    """Drop the line."""
    del line


def wait_until(condition: Callable[[], bool], seconds: float, still: Callable[[], None] | None = None) -> bool:
    """Wait at most `seconds` for a condition; whether it held in time. A long wait calls `still` once."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited >= seconds:
            return False
        if still is not None and waited >= QUIET_SECONDS:
            still()
            still = None
        time.sleep(POLL_SECONDS)
    return True
