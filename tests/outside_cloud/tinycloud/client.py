"""Sends requests to tinycloud: typed errors, retries, fence and observer in one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cloud_controller import retries
from cloud_controller.cloud import (
    AccessDenied,
    CallObserver,
    Conflict,
    Fence,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.common.error_codes import ErrorCodes, typed
from cloud_controller.fence import unfenced
from cloud_controller.retries import RetryPolicy
from tinycloud.api import Account, NoAnswer, Refused

CODES = ErrorCodes(
    (NotFound, "NoSuchLoadBalancer"),
    (AccessDenied, "NotAllowed"),
    (QuotaExceeded, "TooMany"),
    (Conflict, "Busy"),
    (Throttled, "SlowDown"),
    (Unavailable, "Down"),
    (InvalidConfiguration, "Invalid"),
)


class Client:
    """One account. Safe to share between threads."""

    def __init__(self, account: Account, sleep: Callable[[float], None] = time.sleep) -> None:
        self._account = account
        self._sleep = sleep
        self._policy = RetryPolicy(deadline=20.0)
        self.observer: CallObserver | None = None
        self.fence: Fence = unfenced

    def call(self, operation: str, *arguments: Any) -> Any:
        """The answer to the operation. Every one may be repeated: creations have a token."""
        return retries.call(
            lambda number: self._attempt(number, operation, arguments), self._policy, idempotent=True, sleep=self._sleep
        )

    def _attempt(self, number: int, operation: str, arguments: tuple[Any, ...]) -> Any:
        started, failure = time.monotonic(), None
        writes = not operation.startswith(("get_", "list_"))
        try:
            if writes:
                self.fence()
            return self.send(operation, writes, lambda: getattr(self._account, operation)(*arguments))
        except Refused as refused:
            if operation == "delete_load_balancer" and refused.code == "NoSuchLoadBalancer" and number > 0:
                return None  # The first attempt, whose answer was lost, has deleted it.
            text = f"tinycloud: {operation}: {refused.code}"
            invalid = InvalidConfiguration(operation, f"tinycloud refuses it ({refused.code})")
            failure = typed(CODES.kind(refused.code), text, invalid, refused.retry_after)
            raise failure from None
        except NoAnswer:
            failure = Unavailable(f"tinycloud did not answer {operation}")
            raise failure from None
        finally:
            if self.observer is not None:
                self.observer(operation, time.monotonic() - started, failure)

    def send(self, operation: str, writes: bool, request: Callable[[], Any]) -> Any:
        """Send one request; a test puts its own in place of this."""
        del operation, writes
        return request()
