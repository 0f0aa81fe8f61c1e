"""Keys are worked on once at a time, and come back after the right while."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from cloud_controller.cloud import AccessDenied, CloudError, InvalidConfiguration, Throttled, Unavailable
from cloud_controller.controllers import queue as workqueue
from cloud_controller.controllers.queue import Cause, WorkQueue, work
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import UnreachableError
from tests.clock import Clock


def queue(clock: Clock | None = None) -> WorkQueue[str]:
    return WorkQueue(first=5.0, longest=300.0, clock=clock or Clock(100.0))


def test_queue_keys_are_fifo_and_deduplicated() -> None:
    q = queue()
    for key in ("a", "b", "a"):
        q.add(key)

    assert [q.get(0), q.get(0), q.get(0)] == ["a", "b", None]


def test_a_key_added_while_it_is_processed_is_queued_again_afterwards() -> None:
    q = queue()
    q.add("a")
    q.get(0)

    q.add("a")
    assert q.get(0) is None
    q.done("a")

    assert q.get(0) == "a"


def test_a_delayed_key_is_returned_when_it_is_due() -> None:
    clock = Clock(100.0)
    q = queue(clock)
    q.add_after("a", 10)

    assert q.get(0) is None
    clock.now += 10
    assert q.get(0) == "a"


def test_the_shorter_of_two_delays_of_a_key_wins() -> None:
    clock = Clock(100.0)
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
    clock = Clock(100.0)
    q = queue(clock)
    q.add_after("a", 10)
    q.add("a")

    assert q.get(0) == "a"
    q.done("a")
    clock.now += 10
    assert q.get(0) is None


def test_failures_double_the_delay_from_5_to_300_seconds_for_each_key_by_itself() -> None:
    clock = Clock(100.0)
    q = queue(clock)
    delays = []
    for _ in range(8):
        delays.append(q.add_rate_limited("a"))
        clock.now += delays[-1]
        assert q.get(0) == "a"
        q.done("a")

    for delay, least in zip(delays, [5, 10, 20, 40, 80, 160, 300, 300], strict=True):
        assert least <= delay <= least * 1.1
    assert 5 <= q.add_rate_limited("b") <= 5.5


def test_a_key_that_stands_for_the_work_of_many_waits_15_seconds_at_most() -> None:
    q: WorkQueue[str] = WorkQueue(of_many=("*all",))

    delays = [q.add_rate_limited("*all") for _ in range(4)]

    for delay, least in zip(delays, [5, 10, 15, 15], strict=True):
        assert least <= delay <= least * 1.1


def test_a_success_resets_the_backoff_of_a_key() -> None:
    q = queue()
    q.add_rate_limited("a")
    q.add_rate_limited("a")

    q.forget("a")

    assert q.failures("a") == 0
    assert q.add_rate_limited("a") <= 5.5


def test_a_batch_is_every_ready_key_and_none_that_is_delayed_or_processed() -> None:
    clock = Clock(100.0)
    q = queue(clock)
    for key in ("a", "b", "c"):
        q.add(key)
    assert q.get(0) == "a"
    q.add("a")
    q.add_after("d", 10)

    assert q.wait(0)
    assert q.get_batch() == {"b", "c"}
    assert not q.wait(0)

    q.done("a")
    clock.now += 10
    assert q.get_batch() == {"a", "d"}


def test_closing_the_queue_wakes_waiting_workers() -> None:
    q: WorkQueue[str] = WorkQueue()
    got: list[str | None] = []
    waiting = threading.Thread(target=lambda: got.append(q.get()))
    waiting.start()

    q.close()
    waiting.join(60)

    assert got == [None]


def test_a_worker_retries_what_failed_and_forgets_what_succeeded() -> None:
    clock = Clock(100.0)
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


# ------------------------------------------------------------------------------------------------- what failed waits

THROTTLED = Throttled("later", retry_after=42)
NO_ANSWER = Unavailable("down")
FAULT = InvalidConfiguration("annotation x", "wrong")


def failed(error: Exception, meanwhile: Cause | None = None) -> tuple[WorkQueue[str], Clock]:
    """A queue in which key `a` was worked on once, and failed; `meanwhile`: why it was added during that work."""
    clock = Clock(100.0)
    q = queue(clock)
    q.add("a")

    def handle(key: str) -> None:
        if meanwhile is not None:
            q.add(key, meanwhile)
        q.add("end")
        if key == "end":
            q.close()
            return
        raise error

    # The queue is closed for a moment so that the worker returns.
    work(q, handle)
    q._closed = False
    return q, clock


@pytest.mark.parametrize("error", [THROTTLED, NO_ANSWER, UnreachableError("down"), FAULT, AccessDenied("no")])
def test_the_echo_of_its_own_write_does_not_repeat_what_failed_at_once(error: Exception) -> None:
    q, clock = failed(error, meanwhile=Cause.ROUTINE)

    assert q.get(0) is None
    clock.now += 42
    assert q.get(0) == "a"
    q.done("a")
    clock.now += 1000
    assert q.get(0) is None


@pytest.mark.parametrize(
    ("error", "least"),
    [
        (FAULT, Cause.DEPENDENCY),
        (CloudError("refused"), Cause.DEPENDENCY),
        (NO_ANSWER, Cause.OBJECT),
        (UnreachableError("down"), Cause.OBJECT),
        (THROTTLED, None),
    ],
)
@pytest.mark.parametrize("cause", [*Cause])
def test_only_a_cause_that_may_fix_the_failure_bypasses_the_backoff(
    error: Exception, least: Cause | None, cause: Cause
) -> None:
    q, _ = failed(error)

    q.add("a", cause)

    assert (q.get(0) == "a") is (least is not None and cause >= least)


def test_a_change_during_a_failed_attempt_bypasses_the_backoff() -> None:
    q, _ = failed(FAULT, meanwhile=Cause.OBJECT)

    assert q.get(0) == "a"


def test_a_delay_shorter_than_the_backoff_does_not_bypass_it() -> None:
    q, clock = failed(THROTTLED)
    q.add_after("a", 10)

    clock.now += 41.9
    assert q.get(0) is None
    clock.now += 0.1
    assert q.get(0) == "a"


def test_a_change_queues_a_failed_key_once() -> None:
    q, clock = failed(FAULT)
    q.add("a", Cause.OBJECT)
    assert q.get(0) == "a"
    q.forget("a")
    q.done("a")

    clock.now += 1000

    assert q.get(0) is None


def test_a_success_ends_the_backoff_of_a_key() -> None:
    q, _ = failed(NO_ANSWER)
    q.forget("a")

    q.add("a")

    assert q.get(0) == "a"


def test_a_key_in_backoff_does_not_block_other_keys() -> None:
    q, _ = failed(THROTTLED)

    q.add("b")

    assert q.get(0) == "b"


def test_a_bug_in_the_work_on_one_key_fails_that_key_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    q, clock = failed(KeyError("http\u017f"))

    assert (q.failures("a"), q.get(0)) == (1, None)
    [record] = caplog.records
    assert record.levelname == "CRITICAL" and record.exc_info is not None
    clock.now += 10
    assert q.get(0) == "a"


def test_a_worker_whose_write_is_refused_ends() -> None:
    q = queue()
    q.add("a")

    def handle(_: str) -> None:
        raise WriteRefused("the lease is lost")

    with pytest.raises(WriteRefused):
        work(q, handle)
    assert q.failures("a") == 0


# ------------------------------------------------------------------------------------------- what costs processor time


def cost(q: WorkQueue[str], *keys: str, seconds: float = 1.0) -> None:
    """Work on each of these once, which takes so long."""
    for key in keys:
        q.add(key)
        assert q.get(0) == key
        q.done(key, seconds)


def test_costly_keys_have_one_worker_together_and_hold_up_no_other() -> None:
    q = queue()
    cost(q, "heavy-1", "heavy-2")
    for key in ("heavy-1", "heavy-2", "light-1", "light-2"):
        q.add(key)

    assert [q.get(0), q.get(0), q.get(0), q.get(0)] == ["heavy-1", "light-1", "light-2", None]
    q.done("heavy-1", 1.0)
    assert q.get(0) == "heavy-2"


def test_a_costly_key_is_taken_as_soon_as_the_one_before_it_is_done() -> None:
    q: WorkQueue[str] = WorkQueue()
    cost(q, "heavy-1", "heavy-2")
    q.add("heavy-1")
    q.add("heavy-2")
    assert q.get(0) == "heavy-1"
    got: list[str | None] = []
    waiting = threading.Thread(target=lambda: got.append(q.get()))
    waiting.start()

    q.done("heavy-1", 1.0)
    waiting.join(60)

    assert got == ["heavy-2"]


def test_a_key_that_was_costly_once_is_like_any_other_when_it_no_longer_is() -> None:
    q = queue()
    cost(q, "was-heavy", "heavy")
    cost(q, "was-heavy", seconds=0.01)
    q.add("heavy")
    q.add("was-heavy")

    assert [q.get(0), q.get(0)] == ["heavy", "was-heavy"]


def test_a_key_that_stands_for_the_work_of_many_is_never_costly() -> None:
    q: WorkQueue[str] = WorkQueue(of_many=("*all",))
    cost(q, "*all", "heavy")
    q.add("heavy")
    q.add("*all")

    assert [q.get(0), q.get(0)] == ["heavy", "*all"]


def test_a_worker_measures_processor_time_and_not_what_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    used = 0.0
    monkeypatch.setattr(workqueue, "time", SimpleNamespace(thread_time=lambda: used))
    q = queue()
    q.add("heavy")
    q.add("waits")

    def handle(key: str) -> None:
        nonlocal used
        if key == "heavy":
            used += 1
        else:
            q.close()

    work(q, handle)

    assert q._costly == {"heavy"}
