"""Parts in ERROR on a load balancer that is ACTIVE: Octavia has failed to apply their last change, and forgets it.

What is in its database is not what amphorae have. Only sending the change again mends that, and whether it does shows
in a later read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from cloud_controller import retries
from cloud_controller.cloud_errors import Conflict

_FIRST, _LONGEST = 10.0, 300.0
"""Seconds between two attempts; they double."""


@dataclass(frozen=True, slots=True)
class _Attempts:
    number: int
    due: float
    """When the next one is."""


class FailedParts:
    """When each part is sent again. Safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next: dict[str, _Attempts] = {}

    def attempt(self, id: str, what: str, *, at_once: bool = False) -> str:
        """Note that `what` is sent again, and return why. Raises Conflict, which says why, until it is due.

        `at_once`: it is due, because something else of it changes too.
        """
        why = reason(what)
        with self._lock:
            now = self._clock()
            # It was right since: in ERROR, it would have been sent again.
            self._next = {key: each for key, each in self._next.items() if now < each.due + 2 * _LONGEST}
            before = self._next.get(id, _Attempts(0, now))
            if now < before.due and not at_once:
                raise Conflict(why)
            number = before.number + 1
            self._next[id] = _Attempts(number, now + retries.backoff(number, _FIRST, _LONGEST))
        return why


def reason(what: str) -> str:
    """What the Service's author should know."""
    return (
        f"{what} is in ERROR: Octavia could not apply its last change, and the log of Octavia's worker says why."
        " The controller sends it again, at intervals that grow to five minutes"
    )
