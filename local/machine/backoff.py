"""How long to wait before the next try: doubling from a first delay up to a limit, forgotten after a good run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Delays in seconds. Shorter than a kubelet's (10 s to 5 min): a machine here should not keep people waiting."""

    first: float = 1.0
    limit: float = 30.0
    forgotten_after: float = 60.0
    _delay: float = 0.0

    def next(self, ran_for: float = 0.0) -> float:
        """The delay before the next try; `ran_for` is how long the last one lasted."""
        if ran_for >= self.forgotten_after:
            self._delay = 0.0
        self._delay = min(self._delay * 2 if self._delay else self.first, self.limit)
        return self._delay

    @property
    def delay(self) -> float:
        """The last delay given, 0 before the first."""
        return self._delay
