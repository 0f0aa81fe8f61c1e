"""Sends requests to tinycloud: typed errors, retries, fence and observer in one place."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from cloud_controller.cloud import (
    AccessDenied,
    CallObserver,
    CloudError,
    Conflict,
    Fence,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds import retries
from cloud_controller.clouds.retries import RetryPolicy
from cloud_controller.fence import unfenced
from tinycloud.api import Account, NoAnswer, Refused

ERRORS: dict[str, type[CloudError]] = {
    "NoSuchLoadBalancer": NotFound,
    "NotAllowed": AccessDenied,
    "TooMany": QuotaExceeded,
    "Busy": Conflict,
    "Down": Unavailable,
}
"""What the API's error codes mean, besides `SlowDown` and `Invalid`."""


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
            failure = typed(refused, operation)
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


def typed(refused: Refused, operation: str) -> CloudError:
    """The typed error for an error code of the API."""
    message = f"tinycloud: {operation}: {refused.code}"
    if refused.code == "SlowDown":
        return Throttled(message, refused.retry_after)
    if refused.code == "Invalid":
        return InvalidConfiguration(operation, "tinycloud refuses it")
    return ERRORS.get(refused.code, CloudError)(message)
