"""The delay before the next try: doubles from a first delay up to a limit, and is reset after a good run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Delays in seconds. Shorter than a kubelet's (10 s to 5 min), so that people need not wait long."""

    first: float = 1.0
    limit: float = 30.0
    forgotten_after: float = 60.0
    _delay: float = 0.0

    def next(self, ran_for: float = 0.0) -> float:
        """The delay before the next try; `ran_for` is the duration of the last run."""
        if ran_for >= self.forgotten_after:
            self._delay = 0.0
        self._delay = min(self._delay * 2 if self._delay else self.first, self.limit)
        return self._delay

    @property
    def delay(self) -> float:
        """The last delay, 0 before the first."""
        return self._delay
