"""Calls that do not depend on one another, made at once by a bounded number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

_THREADS = 16


class Together:
    """One pool of threads for all load balancers of a cloud; what runs on it must not use it itself."""

    def __init__(self, threads: int = _THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="aws")

    def both(self, one: Callable[[], T], others: Iterable[Callable[[], U]]) -> tuple[T, list[U]]:
        """As a call with all of them; what the one came to, and what the others came to."""
        begun = [self._threads.submit(call) for call in others]
        try:
            result = one()  # The caller would only wait.
        finally:
            wait(begun)
        return result, [each.result() for each in begun]

    def __call__(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """What each of these came to, in their order. Every one is made; raises the first error once all have ended."""
        wanted = [*calls]
        if not wanted:
            return []
        result, others = self.both(wanted[0], wanted[1:])
        return [result, *others]
