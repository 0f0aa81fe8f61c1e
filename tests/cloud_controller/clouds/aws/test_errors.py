"""What AWS's error codes mean to the controllers: which are answers, which come back, which are somebody's input."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from botocore.loaders import create_loader

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.aws.errors import error_code, translated


def told(code: str, status: int = 400) -> CloudError:
    """What a controller is told of this code."""
    answer = {"Error": {"Code": code, "Message": "why"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return translated(ClientError(answer, "DescribeThings"), "ec2", "DescribeThings")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InvalidInstanceID.NotFound", NotFound),
        ("InvalidGroup.NotFound", NotFound),
        ("InvalidRoute.NotFound", NotFound),
        ("UnauthorizedOperation", AccessDenied),
        ("AuthFailure", AccessDenied),
        ("RequestExpired", AccessDenied),
        ("RouteLimitExceeded", QuotaExceeded),
        ("RulesPerSecurityGroupLimitExceeded", QuotaExceeded),
        ("InvalidPermission.Duplicate", Conflict),
        ("InvalidGroup.Duplicate", Conflict),
        ("RouteAlreadyExists", Conflict),
        ("DependencyViolation", Conflict),
        ("IncorrectInstanceState", Conflict),
        ("InvalidParameterValue", InvalidConfiguration),
        ("InvalidInstanceID.Malformed", InvalidConfiguration),
        ("UnsupportedOperation", InvalidConfiguration),
        ("SomethingNew", CloudError),
    ],
)
def test_codes_of_ec2_have_their_kind(code: str, kind: type[CloudError]) -> None:
    assert type(told(code)) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("LoadBalancerNotFound", NotFound),
        ("TargetGroupNotFound", NotFound),
        ("ListenerNotFound", NotFound),
        ("AccessDenied", AccessDenied),
        ("ExpiredToken", AccessDenied),
        ("InvalidClientTokenId", AccessDenied),
        ("TooManyLoadBalancers", QuotaExceeded),
        ("TooManyUniqueTargetGroupsPerLoadBalancer", QuotaExceeded),
        ("DuplicateLoadBalancerName", Conflict),
        ("DuplicateListener", Conflict),
        ("ResourceInUse", Conflict),
        ("OperationNotPermitted", Conflict),
        ("InvalidTarget", Conflict),
        ("ValidationError", InvalidConfiguration),
        ("InvalidConfigurationRequest", InvalidConfiguration),
        ("CertificateNotFound", InvalidConfiguration),
        ("SubnetNotFound", InvalidConfiguration),
        ("SSLPolicyNotFound", InvalidConfiguration),
        ("ALPNPolicyNotFound", InvalidConfiguration),
        ("DuplicateTagKeys", InvalidConfiguration),
        ("TargetGroupAssociationLimit", QuotaExceeded),
        ("HealthUnavailable", Unavailable),
        ("DependencyThrottle", Throttled),
    ],
)
def test_codes_of_load_balancing_have_their_kind(code: str, kind: type[CloudError]) -> None:
    assert type(told(code)) is kind


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
