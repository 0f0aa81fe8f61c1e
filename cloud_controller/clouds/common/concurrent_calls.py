"""Makes many calls to the cloud: in batches of what one call takes, concurrently on a bounded number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

_THREADS = 16


def batches(things: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """The things in their order, at most `most` in each batch."""
    return (things[start : start + most] for start in range(0, len(things), most))


class ConcurrentCalls:
    """One thread pool for all load balancers of a cloud. CALLS ON IT MUST NOT USE IT: that can deadlock."""

    def __init__(self, threads: int = _THREADS) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="cloud-calls")

    def both(self, one: Callable[[], T], others: Iterable[Callable[[], U]]) -> tuple[T, list[U]]:
        """Run `one` on this thread and `others` on the pool; return both results."""
        begun = [self._threads.submit(call) for call in others]
        try:
            result = one()  # The caller would only wait.
        finally:
            wait(begun)
        return result, [each.result() for each in begun]

    def __call__(self, calls: Iterable[Callable[[], T]]) -> list[T]:
        """Run all calls; return their results in order. Raises the first error once all have finished."""
        wanted = [*calls]
        if not wanted:
            return []
        result, others = self.both(wanted[0], wanted[1:])
        return [result, *others]
