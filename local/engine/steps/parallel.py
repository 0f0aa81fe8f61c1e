"""Runs pieces of work in threads, each when it may start, with a limit on how many at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol, TypeVar

from local.engine.termination import SIGNALS_SEEN_EVERY

Item = TypeVar("Item")


class Work(Protocol[Item]):
    """The work to do, and which of it may start now. Called from one thread only."""

    def take(self) -> Item | None:
        """The next piece that may start; None if there is none, or none yet."""
        ...

    def done(self, item: Item, ok: bool) -> None:
        """A piece has ended, successful or not; others may start because of it."""
        ...


def run_all(
    work: Work[Item],
    do: Callable[[Item], bool],
    *,
    workers: int,
    stopping: Callable[[], bool],
    interrupt: Callable[[], None],
) -> None:
    """Do all of it; `do` returns whether a piece succeeded. While `stopping` nothing new starts; running pieces finish.

    Ctrl-C calls `interrupt`, which should make it stop; a second one is raised.
    """
    pool = ThreadPoolExecutor(workers)
    running: dict[Future[bool], Item] = {}
    interrupted = False
    try:
        while True:
            while len(running) < workers and not stopping() and (item := work.take()) is not None:
                running[pool.submit(do, item)] = item
            if not running:
                return
            try:
                ended = wait(running, timeout=SIGNALS_SEEN_EVERY, return_when=FIRST_COMPLETED).done
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                interrupt()
                continue
            for future in ended:
                work.done(running.pop(future), future.result())
    finally:
        # Closing the providers ends what these still wait for.
        pool.shutdown(wait=not running, cancel_futures=True)
