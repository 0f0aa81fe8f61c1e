"""Retries: which errors are worth another attempt, after which delay, and until when.

`call` repeats a request to a cloud or to the API server. Its caller states whether a repetition is safe (`idempotent`).
Requests that certainly had no effect (throttled, or the cloud was never reached) are always safe to repeat. A deadline
bounds the whole call, not each attempt. A write that the fence refuses (`WriteRefused`) is never repeated.
`change` repeats a write that depends on what was read, if somebody else has written in between.

Without the daemon, the controllers run in rounds of observing, planning and applying: `worth_another_round` and
`round_pause` are for these. The daemon retries objects through `controllers.queue`.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    ForeignCluster,
    InvalidConfiguration,
    Overtaken,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.kube_errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    TlsError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)

T = TypeVar("T")

_FINAL = (
    AccessDenied,
    ForbiddenError,
    ForeignCluster,
    InvalidConfiguration,
    InvalidError,
    QuotaExceeded,
    UnauthorizedError,
)
"""Errors that somebody has to fix first."""

RETRY_AFTER = 1.0
"""Seconds after a throttled call, if the server names none."""
_LONGEST_RETRY_AFTER = 3600.0
_CHANGE_ATTEMPTS = 6

_log = logging.getLogger(__name__)


class NeverReached(Unavailable):
    """No connection to the cloud was established, so the call had no effect."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of retries. Times are seconds; `deadline` bounds one call with all its attempts and pauses.

    `throttled_attempts`: the most attempts if the server throttles the call, if more than `attempts`.
    """

    deadline: float = 60.0
    attempts: int = 6
    first_delay: float = 0.2
    longest_delay: float = 5.0
    longest_retry_after: float = math.inf
    throttled_attempts: int = 0

    def pause(self, error: Exception, attempt: int, idempotent: bool, left: float) -> float | None:
        """Seconds to wait before the next attempt after this error (`attempt` counts from 0), or None to give up."""
        attempts = self.attempts
        if isinstance(error, Throttled | TooManyRequestsError):
            attempts = max(attempts, self.throttled_attempts)
            if error.retry_after is None or error.retry_after > self.longest_retry_after:
                return None
            # The server names the delay; jitter spreads the retries of many throttled callers.
            wait = max(error.retry_after, self.first_delay) * (1 + random.random() / 10)
        elif isinstance(error, NeverReached) or (idempotent and _without_answer(error)):
            wait = random.uniform(0.5, 1.0) * backoff(attempt + 1, self.first_delay, self.longest_delay)
        else:
            return None
        return wait if attempt + 1 < attempts and wait < left else None


def call(
    attempt_once: Callable[[int], T],
    policy: RetryPolicy,
    *,
    idempotent: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return the result of `attempt_once(number of the attempt, from 0)`, repeated as the policy allows.

    Raises the last error if it must not be retried, or if the attempts or the deadline are exhausted.
    """
    end = time.monotonic() + policy.deadline
    attempt = 0
    while True:
        try:
            return attempt_once(attempt)
        except (CloudError, ApiError) as error:
            wait = policy.pause(error, attempt, idempotent, end - time.monotonic())
            if wait is None:
                raise
            _log.debug("call failed retry_in=%.1fs error=%r", wait, str(error))
        sleep(wait)
        attempt += 1


def change(attempt_once: Callable[[int], T]) -> T:
    """Return the result of `attempt_once(number of the attempt, from 0)`, repeated at once while others are faster.

    Each attempt must read anew what it writes. Raises Overtaken or ConflictError if others always are.
    """
    for attempt in range(_CHANGE_ATTEMPTS - 1):
        try:
            return attempt_once(attempt)
        except (Overtaken, ConflictError) as error:
            _log.debug("change was overtaken error=%r", str(error))
    return attempt_once(_CHANGE_ATTEMPTS - 1)


def retry_after(header: str | None) -> float:
    """The seconds of a response's Retry-After header; `RETRY_AFTER` if it has none, or a date."""
    try:
        return min(_LONGEST_RETRY_AFTER, max(0.0, float(header or RETRY_AFTER)))
    except ValueError:  # A date: no API of ours sends one, but a proxy may.
        return RETRY_AFTER


def backoff(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after this many failures in a row: `first`, doubling to `longest`."""
    return min(first * (1 << min(failures - 1, 32)), longest)


def worth_another_round(error: CloudError | ApiError) -> bool:
    """Whether observing, planning and applying again may succeed."""
    return not isinstance(error, _FINAL)


def round_pause(rounds: int) -> float:
    """Seconds until the next round, after this many without progress."""
    return backoff(rounds, 0.1, 2.0)


def _without_answer(error: Exception) -> bool:
    return isinstance(error, Unavailable | UnreachableError) and not isinstance(error, TlsError)
