"""The faults that tests inject: which of them affects a call, and what is left of each.

A fault's glob is matched against "METHOD PATH". The endpoints that remove faults are never affected, and the data
plane's own only by a glob that names them, because `*` means what users call.
"""

from __future__ import annotations

import fnmatch
import random
import threading
from dataclasses import dataclass

from local.mycloud.errors import ApiError, Throttled
from local.mycloud.models.staging import Fault

_ADMIN = "/v1/admin/"
_INTERNAL = "/internal/"

_CODES = {
    400: "InvalidParameter",
    401: "Unauthorized",
    403: "PermissionDenied",
    404: "NotFound",
    409: "Conflict",
    429: "Throttled",
    503: "Unavailable",
}
"""The error code of a fault without one."""


class InjectedError(ApiError):
    """The error of a fault; the operation is not done."""

    def __init__(self, status: int, code: str | None) -> None:
        super().__init__("injected fault")
        self.status = status
        self.code = code or _CODES.get(status, "Internal")


@dataclass(frozen=True, slots=True)
class Encounter:
    """The effect on a call: it waits `delay` seconds, then fails with `error`, or loses its answer, or neither."""

    delay: float = 0.0
    error: ApiError | None = None
    drops_answer: bool = False


class Faults:
    """The injected faults, oldest first. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Inject a fault."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    def all(self) -> list[Fault]:
        """The faults with the remaining `count` and `after`."""
        with self._lock:
            return [fault.model_copy() for fault in self._faults]

    def meet(self, operation: str) -> Encounter:
        """The effect on a call of an operation ("METHOD PATH"): every latency up to the first fault of another kind."""
        delay = 0.0
        with self._lock:
            for fault in [each for each in self._faults if _is_meant(each, operation)]:
                if not self._strikes(fault):
                    continue
                if fault.kind == "latency":
                    delay += fault.seconds
                elif fault.kind == "throttle":
                    error = Throttled("too many calls (injected fault)", fault.retry_after)
                    return Encounter(delay, error)
                elif fault.kind == "error":
                    return Encounter(delay, InjectedError(fault.status, fault.code))
                else:
                    return Encounter(delay, drops_answer=True)
        return Encounter(delay)

    def _strikes(self, fault: Fault) -> bool:
        """Count the call that the fault could affect; returns whether it does."""
        if fault.after > 0:
            fault.after -= 1
            return False
        if fault.probability < 1 and random.random() >= fault.probability:
            return False
        if fault.count is not None:
            fault.count -= 1
            if fault.count == 0:
                self._faults.remove(fault)
        return True


def _is_meant(fault: Fault, operation: str) -> bool:
    path = operation.partition(" ")[2]
    if path.startswith(_ADMIN) or (path.startswith(_INTERNAL) and _INTERNAL not in fault.operation):
        return False
    return fnmatch.fnmatchcase(operation, fault.operation)
