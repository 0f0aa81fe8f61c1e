"""Workers of a reconciler: one step at a time per object, and a delay after a failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from local.workers import Workers

SECONDS = 30.0
"""For what must happen."""


class ExpectedError(Exception):
    """What a step may raise."""


class Changes:
    """Counts the reported changes."""

    def __init__(self) -> None:
        self.shown = threading.Semaphore(0)

    def await_one(self) -> None:
        assert self.shown.acquire(timeout=SECONDS)

    def is_empty(self) -> bool:
        return not self.shown.acquire(blocking=False)


@contextmanager
def workers(count: int, changes: Changes, retry_seconds: float = 3600) -> Iterator[Workers]:
    made = Workers(count, expected=ExpectedError, retry_seconds=retry_seconds, changed=changes.shown.release)
    yield made
    made.stop(wait=True)


def test_an_object_has_one_step_at_a_time_while_others_go_on() -> None:
    changes, taken, release, second = Changes(), threading.Event(), threading.Event(), threading.Event()

    with workers(2, changes) as pool:
        pool.submit("a", lambda: _hold(taken, release))
        assert taken.wait(SECONDS)
        pool.submit("a", lambda: _note(second))
        pool.submit("b", lambda: None)
        changes.await_one()
        release.set()

    assert not second.is_set()


def test_the_next_step_starts_after_the_previous_one_is_done() -> None:
    changes = Changes()

    with workers(1, changes) as pool:
        for _ in range(2):
            pool.submit("a", lambda: None)
            changes.await_one()


def test_a_step_that_did_nothing_is_not_reported_as_a_change() -> None:
    changes = Changes()

    with workers(1, changes) as pool:
        pool.submit("a", lambda: False)
        pool.submit("b", lambda: None)
        changes.await_one()

    assert changes.is_empty()


def test_an_object_whose_step_failed_waits_and_others_do_not(caplog: pytest.LogCaptureFixture) -> None:
    changes, again = Changes(), threading.Event()

    with caplog.at_level(logging.WARNING), workers(1, changes) as pool:
        pool.submit("a", _raising(ExpectedError("no room")))
        pool.submit("b", lambda: None)
        changes.await_one()
        pool.submit("a", lambda: _note(again))
        pool.submit("c", lambda: None)
        changes.await_one()

    assert not again.is_set()
    assert [record.getMessage() for record in of_workers(caplog)] == ["a: no room; retrying"]


def test_a_failed_step_is_retried_after_the_delay() -> None:
    changes = Changes()

    with workers(1, changes, retry_seconds=0) as pool:
        pool.submit("a", _raising(ExpectedError("no room")))
        pool.submit("b", lambda: None)
        changes.await_one()
        pool.submit("a", lambda: None)
        changes.await_one()


def test_a_defect_is_logged_with_its_traceback_and_the_worker_continues(caplog: pytest.LogCaptureFixture) -> None:
    changes = Changes()

    with caplog.at_level(logging.WARNING), workers(1, changes) as pool:
        pool.submit("a", _raising(KeyError("zone")))
        pool.submit("b", lambda: None)
        changes.await_one()

    (record,) = of_workers(caplog)
    assert record.levelname == "ERROR"
    assert record.exc_info is not None


def of_workers(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Threads of other tests may log, too."""
    return [record for record in caplog.records if record.name == "local.workers"]


def _hold(taken: threading.Event, release: threading.Event) -> None:
    taken.set()
    assert release.wait(SECONDS)


def _note(begun: threading.Event) -> None:
    begun.set()


def _raising(error: Exception) -> Callable[[], None]:
    def step() -> None:
        raise error

    return step
