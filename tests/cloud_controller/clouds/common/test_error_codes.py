"""The table of a cloud's error codes, and the delay that a throttled response names."""

from __future__ import annotations

import pytest

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.common.error_codes import ErrorCodes, retry_after, typed

CODES = ErrorCodes(
    (Throttled, "Throttled"),
    (AccessDenied, "Denied", "Forbidden.*"),
    (InvalidConfiguration, "SubnetNotFound"),
    (NotFound, r"\w*NotFound|Gone"),
    (Conflict, "InUse"),
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("Throttled", Throttled),
        ("Denied", AccessDenied),
        ("Forbidden.RAM", AccessDenied),
        ("SubnetNotFound", InvalidConfiguration),
        ("PoolNotFound", NotFound),
        ("Gone", NotFound),
        ("InUse", Conflict),
        ("InUseNoMore", CloudError),
        ("", CloudError),
    ],
)
def test_the_first_row_that_matches_a_whole_code_decides(code: str, kind: type[CloudError]) -> None:
    assert CODES.kind(code) is kind


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InUse", 409, Conflict),
        ("InUse", 429, Throttled),
        ("Denied", 429, Throttled),
        ("InUse", 500, Unavailable),
        ("", 502, Unavailable),
        ("Throttled", 503, Throttled),
        ("Denied", 503, AccessDenied),
    ],
)
def test_a_status_of_throttling_or_of_a_failing_server_means_more_than_the_code(
    code: str, status: int, kind: type[CloudError]
) -> None:
    assert CODES.kind(code, status) is kind


def test_an_error_has_its_text_and_a_throttled_one_its_delay() -> None:
    invalid = InvalidConfiguration("field", "why")

    conflict, throttled = typed(Conflict, "in use", invalid), typed(Throttled, "slow down", invalid, 7)

    assert (type(conflict), str(conflict)) == (Conflict, "in use")
    assert isinstance(throttled, Throttled)
    assert (str(throttled), throttled.retry_after) == ("slow down", 7)
    assert typed(InvalidConfiguration, "bad", invalid) is invalid


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
