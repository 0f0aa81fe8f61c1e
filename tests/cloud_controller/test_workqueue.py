"""Keys are worked on once at a time, and come back after the right while."""

from __future__ import annotations

import threading

from cloud_controller.cloud import Throttled, Unavailable
from cloud_controller.workqueue import WorkQueue, work


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def queue(clock: Clock | None = None) -> WorkQueue[str]:
    return WorkQueue(first=5.0, longest=300.0, clock=clock or Clock())


def test_keys_come_out_in_the_order_in_which_they_were_added_and_once() -> None:
    q = queue()
    for key in ("a", "b", "a"):
        q.add(key)

    assert [q.get(0), q.get(0), q.get(0)] == ["a", "b", None]


def test_a_key_that_is_added_while_it_is_worked_on_comes_back_only_when_that_is_done() -> None:
    q = queue()
    q.add("a")
    q.get(0)

    q.add("a")
    assert q.get(0) is None
    q.done("a")

    assert q.get(0) == "a"


def test_a_delayed_key_comes_when_it_is_due() -> None:
    clock = Clock()
    q = queue(clock)
    q.add_after("a", 10)

    assert q.get(0) is None
    clock.now += 10
    assert q.get(0) == "a"


def test_the_earlier_of_two_delays_counts_and_the_key_comes_once() -> None:
    clock = Clock()
    q = queue(clock)
    q.add_after("a", 10)
    q.add_after("a", 2)
    q.add_after("a", 5)

    clock.now += 2
    assert q.get(0) == "a"
    q.done("a")
    clock.now += 100
    assert q.get(0) is None


def test_a_key_that_is_added_need_not_wait_for_its_delay() -> None:
    clock = Clock()
    q = queue(clock)
    q.add_after("a", 10)
    q.add("a")

    assert q.get(0) == "a"
    q.done("a")
    clock.now += 10
    assert q.get(0) is None


def test_failures_double_the_delay_from_5_to_300_seconds_for_each_key_by_itself() -> None:
    q = queue()
    delays = []
    for _ in range(8):
        delays.append(q.add_rate_limited("a"))
        q.add("a")
        q.get(0)
        q.done("a")

    for delay, least in zip(delays, [5, 10, 20, 40, 80, 160, 300, 300], strict=True):
        assert least <= delay <= least * 1.1
    assert 5 <= q.add_rate_limited("b") <= 5.5


def test_success_begins_the_backoff_anew() -> None:
    q = queue()
    q.add_rate_limited("a")
    q.add_rate_limited("a")

    q.forget("a")

    assert q.failures("a") == 0
    assert q.add_rate_limited("a") <= 5.5


def test_closing_wakes_whoever_waits() -> None:
    q: WorkQueue[str] = WorkQueue()
    got: list[str | None] = []
    waiting = threading.Thread(target=lambda: got.append(q.get()))
    waiting.start()

    q.close()
    waiting.join(60)

    assert got == [None]


def test_a_worker_retries_what_failed_and_forgets_what_succeeded() -> None:
    clock = Clock()
    q = queue(clock)
    q.add("throttled")
    q.add("broken")
    q.add("fine")
    seen = []

    def handle(key: str) -> None:
        seen.append(key)
        if key == "throttled":
            raise Throttled("later", retry_after=77)
        if key == "broken":
            raise Unavailable("down")
        q.close()

    work(q, handle)

    assert seen == ["throttled", "broken", "fine"]
    assert (q.failures("throttled"), q.failures("broken"), q.failures("fine")) == (0, 1, 0)
    assert q._due.keys() == {"throttled", "broken"}
