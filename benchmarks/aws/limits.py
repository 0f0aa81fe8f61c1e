"""AWS's limits on API calls, as token buckets: moto has none, and a controller's hardest hour is when they bind.

ELB: docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-api-throttling.html; each version of its API has a
bucket for reads, one for registrations, one for other changes. EC2:
docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html; each operation has a bucket of its own. These are the
limits of a new account.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """A bucket of `capacity` tokens that is refilled with `refill` tokens a second; a call takes one."""

    capacity: float
    refill: float


_ELB_READS = Limit(40, 10)
_ELB_REGISTRATIONS = Limit(20, 4)
# AWS's figure for Modify*; creations and deletions are assumed to share its bucket.
_ELB_CHANGES = Limit(20, 3)
_EC2_READS = Limit(100, 20)
_EC2_CHANGES = Limit(50, 5)

Refusal = tuple[int, bytes]
"""The status and the body of AWS's answer."""


def refusal(operation: str) -> Refusal:
    """AWS's answer to a call over the limit, in the form of its service."""
    if operation.startswith("ec2 "):
        error = "<Error><Code>RequestLimitExceeded</Code><Message>Request limit exceeded.</Message></Error>"
        return 503, f"<Response><Errors>{error}</Errors><RequestID>proxy</RequestID></Response>".encode()
    error = "<Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
    return 400, f"<ErrorResponse>{error}<RequestId>proxy</RequestId></ErrorResponse>".encode()


class Buckets:
    """One account's buckets in one region, full at first. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[Hashable, tuple[float, float]] = {}
        """The tokens of each bucket, and when that was."""

    def take(self, operation: str) -> bool:
        """Whether the call (`elbv2 CreateListener`) is within the limits; one that is not takes no token."""
        found = _bucket(operation)
        if found is None:
            return True
        key, limit = found
        with self._lock:
            now = self._clock()
            tokens, at = self._left.get(key, (limit.capacity, now))
            tokens = min(limit.capacity, tokens + (now - at) * limit.refill)
            taken = tokens >= 1
            self._left[key] = (tokens - taken, now)
            return taken


def _bucket(operation: str) -> tuple[Hashable, Limit] | None:
    """The bucket of an operation; None for services whose limits do not matter here."""
    service, _, action = operation.partition(" ")
    reads = action.startswith("Describe")
    if service == "ec2":
        return operation, _EC2_READS if reads else _EC2_CHANGES
    if service not in ("elb", "elbv2"):
        return None
    registers = action.startswith(("Register", "Deregister"))
    limit = _ELB_READS if reads else _ELB_REGISTRATIONS if registers else _ELB_CHANGES
    return (service, limit), limit
