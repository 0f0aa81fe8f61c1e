"""When a part in ERROR is sent again; nothing here needs a service of OpenStack."""

from __future__ import annotations

import pytest

from cloud_controller.cloud_errors import Conflict
from cloud_controller.clouds.openstack.octavia.failed_parts import FailedParts


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def attempts(until: float) -> list[float]:
    """When a part that stays in ERROR is sent again, if that is tried every second."""
    time, found = Time(), []
    failed = FailedParts(time)
    while time.now < until:
        try:
            failed.attempt("id", "pool tcp-80")
            found.append(time.now)
        except Conflict:
            pass
        time.now += 1.0
    return found


def test_a_part_that_stays_in_error_is_sent_again_at_intervals_that_grow_to_five_minutes() -> None:
    assert attempts(1300.0) == [0.0, 10.0, 30.0, 70.0, 150.0, 310.0, 610.0, 910.0, 1210.0]


def test_until_then_the_reason_is_raised() -> None:
    failed = FailedParts(Time())
    failed.attempt("id", "pool tcp-80")

    with pytest.raises(Conflict, match="pool tcp-80 is in ERROR"):
        failed.attempt("id", "pool tcp-80")


def test_a_part_that_changes_otherwise_is_sent_at_once_and_counts_as_sent() -> None:
    failed = FailedParts(Time())
    failed.attempt("id", "pool tcp-80")

    failed.attempt("id", "pool tcp-80", at_once=True)

    with pytest.raises(Conflict):
        failed.attempt("id", "pool tcp-80")


def test_a_part_that_was_right_for_long_begins_anew() -> None:
    time = Time()
    failed = FailedParts(time)
    failed.attempt("id", "pool tcp-80")
    time.now = 10_000.0
    failed.attempt("id", "pool tcp-80")
    time.now += 10.0

    failed.attempt("id", "pool tcp-80")
