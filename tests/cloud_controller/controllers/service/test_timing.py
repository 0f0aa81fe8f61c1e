"""When the service controller looks again; time is the tests' own."""

from __future__ import annotations

import threading

import pytest

from cloud_controller.controllers.service.timing import (
    GATHER_GONE,
    GATHER_NEW,
    LONGEST_PAUSE,
    Locks,
    NodeStorm,
    Polling,
    Round,
    pause_between_looks,
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_two_hundred_nodes_within_ten_seconds_are_one_change(clock: Clock) -> None:
    storm = NodeStorm(clock)
    for _ in range(200):
        storm.changed(GATHER_NEW)
        assert storm.wait() > 0
        clock.now += 0.05

    clock.now += GATHER_NEW.quiet

    assert storm.wait() == 0


def test_a_storm_that_does_not_end_is_seen_to_after_a_while(clock: Clock) -> None:
    storm = NodeStorm(clock)
    began = clock.now
    while clock.now < began + GATHER_NEW.longest:
        storm.changed(GATHER_NEW)
        assert 0 < storm.wait() <= began + GATHER_NEW.longest - clock.now
        clock.now += 1.0

    assert storm.wait() == 0


def test_a_node_that_is_gone_does_not_wait_for_those_that_still_come(clock: Clock) -> None:
    storm = NodeStorm(clock)
    storm.changed(GATHER_GONE)
    for _ in range(10):
        clock.now += 0.2
        storm.changed(GATHER_NEW)

    assert storm.wait() == 0


def test_nodes_that_go_together_are_one_change_too(clock: Clock) -> None:
    storm = NodeStorm(clock)
    for _ in range(5):
        storm.changed(GATHER_GONE)
        clock.now += 0.3

    assert 0 < storm.wait() <= GATHER_GONE.quiet


def test_after_a_storm_the_next_change_begins_anew(clock: Clock) -> None:
    storm = NodeStorm(clock)
    storm.changed(GATHER_NEW)
    clock.now += 60
    storm.over()

    storm.changed(GATHER_NEW)

    assert storm.wait() == pytest.approx(GATHER_NEW.quiet)


def test_looks_become_rarer_the_longer_something_takes_and_never_stop() -> None:
    pauses = [pause_between_looks(age) for age in (0, 1, 4, 10, 30, 3600)]

    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.3, LONGEST_PAUSE)


def test_looks_at_many_are_rarer_so_that_the_calls_a_second_stay_few() -> None:
    assert 500 / 100 / pause_between_looks(0, 500) <= 1.0, "pages of a hundred, a second"


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

    polling.over("default/web")

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
