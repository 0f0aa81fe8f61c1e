"""After a throttled call, all callers of the operation pause, then take turns."""

from __future__ import annotations

import pytest

from cloud_controller.cloud_errors import Throttled
from cloud_controller.clouds.common.rate_limiter import RateLimiter
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def limiter(clock: Clock) -> RateLimiter:
    return RateLimiter(clock)


def test_no_caller_waits_before_a_call_is_throttled(limiter: RateLimiter) -> None:
    assert [limiter.turn(10) for _ in range(5)] == [0, 0, 0, 0, 0]


def test_all_callers_wait_for_the_pause_and_then_take_turns(limiter: RateLimiter) -> None:
    limiter.throttled(1.0)

    first, second, third = (limiter.turn(60) or 0.0 for _ in range(3))

    assert 1.0 <= first < second < third


def test_many_calls_throttled_at_once_slow_down_as_much_as_one(clock: Clock) -> None:
    one, many = RateLimiter(clock), RateLimiter(clock)
    one.throttled(1.0)
    for _ in range(50):
        many.throttled(1.0)
        clock.now += 0.01

    def gap(limiter: RateLimiter) -> float:
        return -(limiter.turn(60) or 0.0) + (limiter.turn(60) or 0.0)

    assert gap(many) == pytest.approx(gap(one), rel=0.25)


def test_callers_whose_calls_are_throttled_together_still_get_a_turn(limiter: RateLimiter, clock: Clock) -> None:
    for _ in range(16):
        limiter.throttled(1.0)
        clock.now += 0.01

    assert None not in [limiter.turn(20) for _ in range(16)]


def test_a_call_throttled_after_the_pause_slows_down_further(limiter: RateLimiter, clock: Clock) -> None:
    def gap() -> float:
        return -(limiter.turn(60) or 0.0) + (limiter.turn(60) or 0.0)

    limiter.throttled(1.0)
    once = gap()
    clock.now += 10
    limiter.throttled(1.0)

    assert gap() > 1.5 * once


def test_a_caller_without_the_patience_gets_none_and_takes_no_slot(limiter: RateLimiter) -> None:
    limiter.throttled(5.0)

    assert limiter.turn(1.0) is None
    assert limiter.turn(60) == pytest.approx(5.0)


def test_each_successful_call_shortens_the_interval_until_no_caller_waits(limiter: RateLimiter, clock: Clock) -> None:
    limiter.throttled(1.0)
    clock.now += 10

    for _ in range(50):
        limiter.turn(60)
        clock.now += 1
        limiter.succeeded()

    assert [limiter.turn(60) for _ in range(3)] == [0, 0, 0]


def test_a_throttled_attempt_slows_down_the_next_and_one_beyond_its_deadline_is_not_made(
    clock: Clock, limiter: RateLimiter
) -> None:
    waits: list[float] = []
    made: list[float] = []

    def call(patience: float, error: Exception | None = None) -> None:
        with limiter.paced(what="x Get", until=clock.now + patience, sleep=waits.append):
            made.append(patience)
            if error is not None:
                raise error

    with pytest.raises(Throttled, match="too many"):
        call(20, Throttled("too many", 30))
    with pytest.raises(Throttled, match="x Get is throttled for longer than the call's deadline"):
        call(20)
    call(40)

    assert made == [20, 40]
    assert waits == [30]
