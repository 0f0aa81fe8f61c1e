"""What AWS's errors mean to the controllers, besides the codes, which the contract suite knows."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from botocore.loaders import create_loader

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    InvalidConfiguration,
    NotFound,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.aws.errors import error_code, translated


def told(code: str, status: int = 400) -> CloudError:
    """What a controller is told of this code."""
    answer = {"Error": {"Code": code, "Message": "why"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return translated(ClientError(answer, "DescribeThings"), "ec2", "DescribeThings")  # type: ignore[arg-type]


@pytest.mark.parametrize("service", ["elb", "elbv2"])
def test_every_error_that_load_balancing_documents_has_a_kind(service: str) -> None:
    shapes = create_loader().load_service_model(service, "service-2")["shapes"]
    codes = {shape["error"]["code"] for shape in shapes.values() if shape.get("exception")}

    # Of features that no controller uses: capacity reservations, trust stores, shared associations.
    unused = {"CapacityReservationPending", "DeleteAssociationSameAccount", "TrustStoreNotReady"}
    assert {code for code in codes if type(told(code)) is CloudError} <= unused


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("RequestLimitExceeded", 503, Throttled),
        ("Throttling", 400, Throttled),
        ("TooManyRequestsException", 400, Throttled),
        ("Whatever", 429, Throttled),
        ("InternalError", 500, Unavailable),
        ("ServiceUnavailable", 503, Unavailable),
        ("", 502, Unavailable),
    ],
)
def test_what_passes_by_itself_is_told_from_what_does_not(code: str, status: int, kind: type[CloudError]) -> None:
    assert type(told(code, status)) is kind


def test_bad_input_names_the_operation_that_refused_it() -> None:
    error = told("ValidationError")

    assert isinstance(error, InvalidConfiguration)
    assert (error.field, error.why) == ("AWS: ec2 DescribeThings", "ValidationError: why")


def test_a_call_that_was_made_for_another_is_named() -> None:
    answer = {"Error": {"Code": "AccessDenied", "Message": "no"}}
    refusal = ClientError(answer, "AssumeRole")  # type: ignore[arg-type]

    error = translated(refusal, "ec2", "DescribeThings")

    assert isinstance(error, AccessDenied)
    assert "AssumeRole (for ec2 DescribeThings)" in str(error)


def test_an_error_of_ours_has_no_code() -> None:
    assert error_code(NotFound("x")) == ""
