"""The table of a cloud's error codes."""

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
from cloud_controller.clouds.common.error_codes import ErrorCodes, typed

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
