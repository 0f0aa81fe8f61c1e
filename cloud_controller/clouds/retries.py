"""When a call to a cloud is made again, and after how long: the one place that knows.

What may be repeated safely is the caller's knowledge (`idempotent`); what the cloud certainly did not do (throttled,
never reached) may always be repeated. Waiting is bounded by a deadline for the whole call, not by each attempt.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cloud_controller.cloud import Throttled, Unavailable

T = TypeVar("T")


class NeverReached(Unavailable):
    """The cloud could not be reached at all, so it has certainly done nothing."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient a client is. Times are seconds; `deadline` bounds one call with all its attempts and pauses."""

    deadline: float = 60.0
    attempts: int = 6
    first_delay: float = 0.2
    longest_delay: float = 5.0

    def pause(self, error: Exception, attempt: int, idempotent: bool, left: float) -> float | None:
        """Seconds to wait before the next attempt after this error (`attempt` counts from 0), or None to give up."""
        if isinstance(error, Throttled):
            # The cloud names the time; the jitter keeps many throttled callers from returning together.
            wait = max(error.retry_after, self.first_delay) * (1 + random.random() / 10)
        elif isinstance(error, NeverReached) or (isinstance(error, Unavailable) and idempotent):
            wait = random.uniform(0.5, 1.0) * min(self.longest_delay, self.first_delay * 2**attempt)
        else:
            return None
        return wait if attempt + 1 < self.attempts and wait < left else None


def call(
    attempt_once: Callable[[int], T],
    policy: RetryPolicy,
    *,
    idempotent: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """The result of `attempt_once(number of the attempt, from 0)`, repeated as the policy allows.

    Raises the last attempt's error when it is not of a kind to be repeated, or patience is over.
    """
    end = time.monotonic() + policy.deadline
    attempt = 0
    while True:
        try:
            return attempt_once(attempt)
        except (Throttled, Unavailable) as error:
            wait = policy.pause(error, attempt, idempotent, end - time.monotonic())
            if wait is None:
                raise
        sleep(wait)
        attempt += 1
