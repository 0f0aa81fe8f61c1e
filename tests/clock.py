"""Time that only a test moves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds that pass when the test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
