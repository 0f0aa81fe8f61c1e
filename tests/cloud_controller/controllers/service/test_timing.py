"""When the service controller looks again; time is the tests' own."""

from __future__ import annotations

import threading

import pytest

from cloud_controller.controllers.service.timing import (
    DEBOUNCE_CHANGED,
    DEBOUNCE_REMOVED,
    LONGEST_PAUSE,
    Locks,
    NodeDebouncer,
    Polling,
    Round,
    poll_interval,
)
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


def test_two_hundred_nodes_within_ten_seconds_are_one_batch(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    for _ in range(200):
        debouncer.changed(DEBOUNCE_CHANGED)
        assert debouncer.wait() > 0
        clock.now += 0.05

    clock.now += DEBOUNCE_CHANGED.quiet

    assert debouncer.wait() == 0


def test_an_endless_series_of_node_changes_is_processed_after_a_maximum_delay(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    began = clock.now
    while clock.now < began + DEBOUNCE_CHANGED.longest:
        debouncer.changed(DEBOUNCE_CHANGED)
        assert 0 < debouncer.wait() <= began + DEBOUNCE_CHANGED.longest - clock.now
        clock.now += 1.0

    assert debouncer.wait() == 0


def test_a_removed_node_does_not_wait_for_added_ones(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    debouncer.changed(DEBOUNCE_REMOVED)
    for _ in range(10):
        clock.now += 0.2
        debouncer.changed(DEBOUNCE_CHANGED)

    assert debouncer.wait() == 0


def test_nodes_removed_together_are_one_batch(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    for _ in range(5):
        debouncer.changed(DEBOUNCE_REMOVED)
        clock.now += 0.3

    assert 0 < debouncer.wait() <= DEBOUNCE_REMOVED.quiet


def test_after_a_reset_the_next_node_change_starts_a_new_batch(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    debouncer.changed(DEBOUNCE_CHANGED)
    clock.now += 60
    debouncer.reset()

    debouncer.changed(DEBOUNCE_CHANGED)

    assert debouncer.wait() == pytest.approx(DEBOUNCE_CHANGED.quiet)


def test_polling_slows_down_the_longer_an_operation_takes() -> None:
    pauses = [poll_interval(age) for age in (0, 1, 4, 10, 30, 3600)]

    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.3, LONGEST_PAUSE)


def test_polling_of_many_operations_is_slower() -> None:
    assert 500 / 100 / poll_interval(0, 500) <= 1.0, "pages of a hundred, a second"


def test_a_new_operation_speeds_up_polling(clock: Clock) -> None:
    polling = Polling(clock)
    polling.pause(["lb-1"])
    clock.now += 20
    assert polling.pause(["lb-1"]) == 5.0

    assert polling.pause(["lb-1", "lb-2"]) == 0.3


def test_a_stopped_poll_is_forgotten(clock: Clock) -> None:
    polling = Polling(clock)
    polling.pause_of("default/web")
    clock.now += 20
    assert polling.pause_of("default/web") == 5.0

    polling.stop("default/web")

    assert polling.pause_of("default/web") == 0.3


def test_two_that_want_the_same_locks_in_any_order_never_wait_for_each_other_forever() -> None:
    locks, done = Locks(), []

    def work(names: list[str]) -> None:
        for _ in range(200):
            with locks.held(names):
                done.append(names)

    threads = [threading.Thread(target=work, args=(names,), daemon=True) for names in (["a", "b"], ["b", "a"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(done) == 400


def test_locks_that_nobody_holds_are_not_kept() -> None:
    locks = Locks()

    with locks.held(["a", "b"]):
        assert len(locks._locks) == 2

    assert len(locks._locks) == 0


def test_a_round_ends_with_the_last_processed_name(clock: Clock) -> None:
    round_ = Round(clock)
    round_.begin(["a", "b"])
    clock.now += 2
    assert round_.seen("b") is None
    assert round_.seen("c") is None

    clock.now += 1

    assert round_.seen("a") == 3.0
    assert round_.seen("a") is None, "it has ended"
