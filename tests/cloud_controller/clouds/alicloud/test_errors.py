"""Alibaba Cloud's error codes mean what controllers know; codes that Alibaba's references and recordings show."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.alicloud.errors import of_code

CODES: dict[type[CloudError], str] = {
    Throttled: "Throttling Throttling.User Throttling.Api Throttling.Resource QpsLimitExceeded",
    AccessDenied: (
        "Forbidden Forbidden.RAM Forbidden.SubUser NoPermission NoPermission.SLR InvalidAccessKeyId.NotFound"
        " InvalidAccessKeyId.Inactive InvalidSecurityToken.Expired SignatureDoesNotMatch IncompleteSignature"
        " InvalidTimeStamp.Expired AuthenticationFail.OIDCToken.Expired EntityNotExist.Role UnauthorizedOperation"
    ),
    Unavailable: (
        "InternalError ServiceUnavailable UnknownError SystemBusy OperationFailed.SystemBusy RequestTimeout"
        " LastTokenProcessing IdempotentProcessing"
    ),
    NotFound: (
        "InvalidLoadBalancerId.NotFound InvalidInstanceId.NotFound ResourceNotFound.serverGroup"
        " ResourceNotFound.loadBalancer InvalidRouteTableId.NotFound RspoolVipExist.NotExist"
    ),
    QuotaExceeded: (
        "QuotaExceeded QuotaExceeded.RouteEntry QuotaExceeded.LoadBalancersNum LimitExceeded"
        " ResourceQuotaExceeded.listener TooManyRequest OperationDenied.NoStock"
    ),
    Conflict: (
        "OperationConflict Conflict.Lock TaskConflict IncorrectStatus IncorrectStatus.loadBalancer"
        " IncorrectVpcStatus IncorrectRouteEntryStatus InvalidStatus.RouteEntry ResourceInConfiguring"
        " ResourceInConfiguring.loadBalancer ResourceInUse.serverGroup ResourceAlreadyExist.listener"
        " ResourceAlreadyAssociated.serverGroup DependencyViolation.RouteEntry IdempotentParameterMismatch"
        " IdempotenceParamNotMatch OperationFailed.ListenerStatusNotSupport OperationDenied.DeleteProtectionIsOn"
        " BackendServer.configuring ServiceIsConfiguring ServiceIsStopping"
        " VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE VPC_ROUTE_ENTRY_STATUS_ERROR"
    ),
    InvalidConfiguration: (
        "InvalidParameter InvalidParameter.Bandwidth InvalidCIDRBlock MissingParam.RouteTableId MissingParameter"
        " IllegalParam.ZoneMappings UnsupportedRegion Mismatch.VpcId VSwitchAvailableIpNotExist"
        " CertificateNotExist"
    ),
    CloudError: "SomethingNew",
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in CODES.items() for code in codes.split()])
def test_a_code_is_the_error_that_it_means(kind: type[CloudError], code: str) -> None:
    found = of_code(code, "words", "slb CreateLoadBalancer")

    assert type(found) is kind
    assert f"{code}: words" in str(found)


def test_a_failing_server_leaves_the_effect_unknown_whatever_its_code() -> None:
    assert type(of_code("InvalidParameter", "words", "slb CreateLoadBalancer", 500)) is Unavailable


@pytest.mark.parametrize(
    "quoted",
    [
        "server string to sign is:POST&%2F&SecurityToken%3Da-session-token",
        "server StringToSign is [ACS3-HMAC] server CanonicalRequest is [x-acs-security-token:a-session-token]",
        "server CanonicalRequest is [x-acs-security-token:a-session-token]",
    ],
)
def test_what_the_api_quotes_of_the_request_is_in_no_error(quoted: str) -> None:
    told = str(of_code("SignatureDoesNotMatch", f"The signature does not match. {quoted}", "slb CreateLoadBalancer"))

    assert "The signature does not match." in told
    assert "a-session-token" not in told
