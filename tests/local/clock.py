"""A clock that tests move."""

from __future__ import annotations


class Clock:
    """Stands still until `now` is changed."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
