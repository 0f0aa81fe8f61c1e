"""Concurrent calls: all are made, on a bounded number of threads, and no error is lost."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls, batches


def test_answers_come_in_the_order_of_the_calls() -> None:
    assert ConcurrentCalls()([partial(abs, number) for number in range(40)]) == [*range(40)]
    assert ConcurrentCalls()([]) == []


def test_calls_do_not_wait_for_one_another() -> None:
    met = threading.Barrier(3, timeout=60)

    ConcurrentCalls()([met.wait, met.wait, met.wait])


def test_the_result_of_the_callers_own_call_comes_apart_from_the_others() -> None:
    assert ConcurrentCalls().both(lambda: "one", [lambda: 1, lambda: 2]) == ("one", [1, 2])


@pytest.mark.parametrize("failing", [0, 2])
def test_an_error_is_raised_once_every_call_has_ended(failing: int) -> None:
    ended: list[int] = []

    def call(number: int) -> None:
        if number == failing:
            raise OSError(f"call {number}")
        ended.append(number)

    with pytest.raises(OSError, match=f"call {failing}"):
        ConcurrentCalls()([partial(call, number) for number in range(4)])

    assert sorted(ended) == [number for number in range(4) if number != failing]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, ["a"]), (3, ["abc"]), (4, ["abc", "d"]), (7, ["abc", "def", "g"])]
)
def test_no_batch_holds_more_than_a_call_takes(count: int, expected: list[str]) -> None:
    assert [*batches("abcdefg"[:count], 3)] == expected
