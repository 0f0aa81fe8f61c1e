"""Pieces of work in threads: how many at a time, and what stops them."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any

import pytest

from local.engine.steps import parallel
from local.engine.steps.parallel import Work, run_all


class Independent(Work[int]):
    """Pieces without dependencies between them."""

    def __init__(self, items: list[int]) -> None:
        self._items = items

    def take(self) -> int | None:
        return self._items.pop(0) if self._items else None

    def done(self, item: int, ok: bool) -> None:
        del item, ok


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_parallel_pieces_is_limited(workers: int) -> None:
    lock, running, most = threading.Lock(), 0, 0
    everyone = threading.Barrier(workers)

    def do(_: int) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        everyone.wait(60)
        with lock:
            running -= 1
        return True

    run_all(Independent(list(range(6))), do, workers=workers, stopping=lambda: False, interrupt=lambda: None)
    assert most == workers and running == 0


def test_nothing_starts_while_stopping() -> None:
    done: list[int] = []

    def do(item: int) -> bool:
        done.append(item)
        return True

    run_all(Independent([1, 2, 3]), do, workers=1, stopping=lambda: bool(done), interrupt=lambda: None)
    assert done == [1]


def test_after_ctrl_c_running_pieces_finish_and_a_second_one_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    go, done, interrupts = threading.Event(), list[int](), list[int]()
    presses = iter([True, False])

    def pressed(*arguments: Any, **options: Any) -> Any:
        if next(presses, False):
            raise KeyboardInterrupt
        go.set()
        return concurrent.futures.wait(*arguments, **options)

    def do(item: int) -> bool:
        assert go.wait(60)
        done.append(item)
        return True

    def run() -> None:
        run_all(
            Independent([1, 2, 3]),
            do,
            workers=1,
            stopping=lambda: bool(interrupts),
            interrupt=lambda: interrupts.append(1),
        )

    monkeypatch.setattr(parallel, "wait", pressed)
    run()
    assert done == [1] and interrupts == [1]

    presses = iter([True, True])
    interrupts.clear()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert interrupts == [1]


def test_an_exception_in_a_piece_of_work_is_raised() -> None:
    def do(_: int) -> bool:
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="a fault of ours"):
        run_all(Independent([1]), do, workers=2, stopping=lambda: False, interrupt=lambda: None)
