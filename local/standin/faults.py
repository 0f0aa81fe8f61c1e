"""The faults that tests inject into a stand-in's calls."""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import dataclass, replace

from local.standin.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the calls of an operation, such as `product.Action`."""

    operation: str
    """A glob."""
    error: Refusal | None = None
    """The call is refused with it, and nothing is done."""
    loses_answer: bool = False
    """The call is carried out, and its connection ends without an answer."""
    delay: float = 0.0
    """Seconds before the call is carried out."""
    fails_job: str | None = None
    """The job that the call starts fails with this code, and changes nothing."""
    after: int = 0
    """This many calls pass before."""
    count: int | None = 1
    """How many calls are affected; None: all."""


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

    def left(self) -> list[Fault]:
        """The faults with what is left of `after` and `count`."""
        with self._lock:
            return list(self._faults)

    def meet(self, operation: str) -> Fault | None:
        """The first fault that affects this call, counted."""
        with self._lock:
            for number, fault in enumerate(self._faults):
                if not fnmatch.fnmatchcase(operation, fault.operation):
                    continue
                if fault.after > 0:
                    self._faults[number] = replace(fault, after=fault.after - 1)
                    continue
                if fault.count == 1:
                    del self._faults[number]
                elif fault.count is not None:
                    self._faults[number] = replace(fault, count=fault.count - 1)
                return fault
        return None
