"""Which errors are worth another attempt, and when."""

from __future__ import annotations

import math

import pytest

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    ForeignCluster,
    InvalidConfiguration,
    NotFound,
    Overtaken,
    Postponed,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.fence import WriteRefused
from cloud_controller.kube_errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    TlsError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from cloud_controller.retries import (
    NeverReached,
    RetryPolicy,
    call,
    change,
    retry_after,
    round_pause,
    worth_another_round,
)

POLICY = RetryPolicy(attempts=4, longest_retry_after=30.0)


def busy(retry_after: float | None) -> TooManyRequestsError:
    error = TooManyRequestsError(429, "TooManyRequests", "busy")
    error.retry_after = retry_after
    return error


def pause(error: Exception, attempt: int = 0, *, idempotent: bool = True, left: float = math.inf) -> float | None:
    return POLICY.pause(error, attempt, idempotent, left)


@pytest.mark.parametrize("error", [Throttled("busy", 3.0), busy(3.0)], ids=["cloud", "API server"])
def test_a_throttled_call_waits_as_long_as_the_server_says_even_if_it_is_not_idempotent(error: Exception) -> None:
    wait = pause(error, idempotent=False)

    assert wait is not None and 3.0 <= wait <= 3.3


def test_an_unanswered_idempotent_call_is_repeated_after_growing_pauses() -> None:
    for error in (Unavailable("lost"), UnreachableError("lost")):
        for attempt, longest in enumerate([0.2, 0.4, 0.8]):
            wait = pause(error, attempt)
            assert wait is not None and longest / 2 <= wait <= longest


def test_only_a_call_that_never_reached_the_server_is_repeated_if_it_is_not_idempotent() -> None:
    assert pause(NeverReached("refused"), idempotent=False) is not None
    assert pause(Unavailable("lost"), idempotent=False) is None
    assert pause(UnreachableError("lost"), idempotent=False) is None


@pytest.mark.parametrize(
    "error",
    [
        CloudError("?"),
        Conflict("in use"),
        NotFound("gone"),
        ApiError(500, "InternalError", "?"),
        ConflictError(409, "Conflict", "changed"),
        TlsError("unknown authority"),
        busy(None),
        busy(31.0),
    ],
    ids=repr,
)
def test_other_errors_are_left_to_the_caller(error: Exception) -> None:
    assert pause(error) is None


def test_attempts_and_deadline_are_bounded() -> None:
    assert pause(Unavailable("down"), attempt=2) is not None
    assert pause(Unavailable("down"), attempt=3) is None
    assert pause(Throttled("busy", 5.0), left=5.0) is None


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        (AccessDenied("no"), False),
        (CloudError("?"), True),
        (Conflict("in use"), True),
        (ForeignCluster("another"), False),
        (InvalidConfiguration("port", "not served"), False),
        (NotFound("gone"), True),
        (Postponed("later"), True),
        (QuotaExceeded("full"), False),
        (Throttled("busy", 1.0), True),
        (Unavailable("down"), True),
        (ApiError(500, "InternalError", "?"), True),
        (ConflictError(409, "Conflict", "changed"), True),
        (ForbiddenError(403, "Forbidden", "no"), False),
        (InvalidError(422, "Invalid", "no"), False),
        (UnauthorizedError(401, "Unauthorized", "expired"), False),
        (UnreachableError("down"), True),
    ],
    ids=repr,
)
def test_another_round_is_worth_it_unless_somebody_has_to_fix_the_error_first(
    error: CloudError | ApiError, worth: bool
) -> None:
    assert worth_another_round(error) is worth


def test_a_throttled_call_may_have_more_attempts_than_one_without_an_answer() -> None:
    policy = RetryPolicy(attempts=2, throttled_attempts=3)

    def attempts(error: CloudError) -> int:
        made: list[int] = []

        def fail(attempt: int) -> None:
            made.append(attempt)
            raise error

        with pytest.raises(type(error)):
            call(fail, policy, idempotent=True, sleep=lambda _: None)
        return len(made)

    assert attempts(Throttled("busy", 1.0)) == 3
    assert attempts(Unavailable("down")) == 2


@pytest.mark.parametrize("error", [Overtaken("changed"), ConflictError(409, "Conflict", "changed")], ids=repr)
def test_a_change_that_others_overtake_is_repeated_at_once_a_few_times(error: Exception) -> None:
    attempts: list[int] = []

    def overtaken(times: int) -> int:
        attempts.clear()

        def write(attempt: int) -> int:
            attempts.append(attempt)
            if attempt < times:
                raise error
            return attempt

        return change(write)

    assert overtaken(3) == 3
    assert attempts == [0, 1, 2, 3]
    with pytest.raises(type(error)):
        overtaken(100)
    assert attempts == [0, 1, 2, 3, 4, 5]


def test_a_change_that_the_objects_state_forbids_is_not_repeated() -> None:
    attempts: list[int] = []

    def write(attempt: int) -> None:
        attempts.append(attempt)
        raise Conflict("in use")

    with pytest.raises(Conflict):
        change(write)
    assert attempts == [0]


def test_rounds_without_progress_are_made_at_growing_intervals() -> None:
    assert [round_pause(rounds) for rounds in range(1, 8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_refused_write_is_never_repeated() -> None:
    attempts: list[int] = []

    def write(attempt: int) -> None:
        attempts.append(attempt)
        raise WriteRefused("the lease is lost")

    with pytest.raises(WriteRefused):
        call(write, POLICY, idempotent=True)
    assert attempts == [0]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 1),
        ("", 1),
        ("0", 0),
        ("2.5", 2.5),
        ("inf", 3600),
        ("1e300", 3600),
        ("-5", 0),
        ("nan", 0),
        ("soon", 1),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 1),
    ],
)
def test_the_delay_of_a_response_is_bounded_whatever_its_header_says(header: str | None, seconds: float) -> None:
    assert retry_after(header) == seconds
