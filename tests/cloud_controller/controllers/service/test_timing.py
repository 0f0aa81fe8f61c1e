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


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_two_hundred_nodes_within_ten_seconds_are_one_change(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    for _ in range(200):
        debouncer.changed(DEBOUNCE_CHANGED)
        assert debouncer.wait() > 0
        clock.now += 0.05

    clock.now += DEBOUNCE_CHANGED.quiet

    assert debouncer.wait() == 0


def test_a_storm_that_does_not_end_is_seen_to_after_a_while(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    began = clock.now
    while clock.now < began + DEBOUNCE_CHANGED.longest:
        debouncer.changed(DEBOUNCE_CHANGED)
        assert 0 < debouncer.wait() <= began + DEBOUNCE_CHANGED.longest - clock.now
        clock.now += 1.0

    assert debouncer.wait() == 0


def test_a_node_that_is_gone_does_not_wait_for_those_that_still_come(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    debouncer.changed(DEBOUNCE_REMOVED)
    for _ in range(10):
        clock.now += 0.2
        debouncer.changed(DEBOUNCE_CHANGED)

    assert debouncer.wait() == 0


def test_nodes_that_go_together_are_one_change_too(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    for _ in range(5):
        debouncer.changed(DEBOUNCE_REMOVED)
        clock.now += 0.3

    assert 0 < debouncer.wait() <= DEBOUNCE_REMOVED.quiet


def test_after_a_storm_the_next_change_begins_anew(clock: Clock) -> None:
    debouncer = NodeDebouncer(clock)
    debouncer.changed(DEBOUNCE_CHANGED)
    clock.now += 60
    debouncer.reset()

    debouncer.changed(DEBOUNCE_CHANGED)

    assert debouncer.wait() == pytest.approx(DEBOUNCE_CHANGED.quiet)


def test_looks_become_rarer_the_longer_something_takes_and_never_stop() -> None:
    pauses = [poll_interval(age) for age in (0, 1, 4, 10, 30, 3600)]

    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.3, LONGEST_PAUSE)


def test_looks_at_many_are_rarer_so_that_the_calls_a_second_stay_few() -> None:
    assert 500 / 100 / poll_interval(0, 500) <= 1.0, "pages of a hundred, a second"


def test_what_has_just_begun_makes_looks_frequent_again(clock: Clock) -> None:
    polling = Polling(clock)
    polling.pause(["lb-1"])
    clock.now += 20
    assert polling.pause(["lb-1"]) == 5.0

    assert polling.pause(["lb-1", "lb-2"]) == 0.3


def test_one_that_is_waited_for_by_itself_is_forgotten_when_it_is_over(clock: Clock) -> None:
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


def test_a_round_ends_with_the_last_that_is_seen_to(clock: Clock) -> None:
    round_ = Round(clock)
    round_.begin(["a", "b"])
    clock.now += 2
    assert round_.seen("b") is None
    assert round_.seen("c") is None

    clock.now += 1

    assert round_.seen("a") == 3.0
    assert round_.seen("a") is None, "it has ended"
