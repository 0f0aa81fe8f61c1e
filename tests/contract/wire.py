"""Stands between a cloud's client and its API: counts requests, and lets one of them go wrong."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class Died(BaseException):
    """The process ended; nothing of it may catch this."""


@dataclass
class Wire:
    """Every attempt at a request goes through `send`.

    `no_answer` makes the exception of the client's transport when a connection breaks. `refusal` makes the cloud's
    answer with this error code and, if the cloud is throttling, the seconds to wait: returned or raised, whichever the
    client's transport does.
    """

    no_answer: Callable[[], Exception]
    refusal: Callable[[str, float], Any]
    writes: list[str] = field(default_factory=list)
    """The writes that have taken effect or been refused by the cloud, in their order."""
    reads: int = 0
    before_write: Callable[[], None] = field(default=lambda: None)
    """Called when a write is about to be sent."""
    full: Mapping[str, str] = field(default_factory=dict)
    """Error codes by operation, for good: of an account without room, where the simulator has no quotas."""
    is_busy: Callable[[Any], bool] = field(default=lambda _answer: False)
    """Whether this answer only says that another change is under way: how often a write meets it is chance."""
    happened: int = 0
    """How often what was arranged has happened."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _fault: Callable[[bool, int], str] = field(default=lambda _write, _number: "")
    _code: str = ""
    _retry_after: float = 0.0
    _numbers: Counter[bool] = field(default_factory=Counter)
    _died: bool = False

    def send(self, operation: str, write: bool, request: Callable[[], Any]) -> Any:
        """Send the request, and return the cloud's answer, as far as nothing has been arranged."""
        with self._lock:  # A cloud may have several requests under way.
            if self._died:
                raise Died
            self._numbers[write] += 1
            fault = self._fault(write, self._numbers[write])
            self.happened += bool(fault)
            code = self.full.get(operation, self._code if fault == "refuse" else "")
        if code:
            answer = self.refusal(code, self._retry_after)
            self._count(operation, write)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if fault == "break":
            raise self.no_answer()
        if write:
            self.before_write()
        answer = request()
        if self.is_busy(answer):
            with self._lock:
                self._numbers[write] -= 1
                self.happened -= bool(fault)
            return answer
        self._count(operation, write)
        if fault == "lose":
            raise self.no_answer()
        if fault == "die":
            self._died = True
            raise Died
        return answer

    def _count(self, operation: str, write: bool) -> None:
        with self._lock:
            if write:
                self.writes.append(operation)
            else:
                self.reads += 1

    # ---------------------------------------------------------------------------------------------- what goes wrong

    def lose_answer(self, of_write: int, in_a_row: int = 1) -> None:
        """The `of_write`-th write from now takes effect, but its answer never arrives; so do further ones in a row."""
        self._arrange(lambda write, number: "lose" if write and 0 <= number - of_write < in_a_row else "")

    def die(self, after_write: int, in_a_row: int = 1) -> None:
        """The process ends when the `after_write`-th write from now has taken effect; so do the next ones, each after
        one more."""
        self._arrange(lambda write, number: "die" if write and 0 <= number - after_write < in_a_row else "")

    def start_again(self) -> None:
        """A process that died has been started again; what is arranged stays."""
        self._died = False

    def refuse(
        self,
        code: str,
        *,
        retry_after: float = 0.0,
        write: int | None = None,
        read: int | None = None,
        writes_only: bool = False,
    ) -> None:
        """The cloud refuses every request with this error code, or only the n-th write or read, or all writes."""
        self._code, self._retry_after = code, retry_after
        if write is not None or read is not None:
            self._arrange(lambda is_write, number: "refuse" if number == (write if is_write else read) else "")
        else:
            self._arrange(lambda is_write, _: "refuse" if is_write or not writes_only else "")

    def break_off(self) -> None:
        """No request arrives, and none is answered."""
        self._arrange(lambda _write, _number: "break")

    def peace(self) -> None:
        """From now on, every request succeeds; a process that died has been started again."""
        self._arrange(lambda _write, _number: "")

    def _arrange(self, fault: Callable[[bool, int], str]) -> None:
        self._fault, self._died, self.happened = fault, False, 0
        self._numbers.clear()
