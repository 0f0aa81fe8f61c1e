"""Translates AWS's errors into those of `cloud_errors`, with AWS's code kept.

The codes are those of the API references' pages "Common errors" and of each operation. EC2's codes look like
`InvalidGroup.NotFound`, ELB's like `LoadBalancerNotFound`; ELBv2's codes lack the `Exception` of their classes' names.
"""

from __future__ import annotations

from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    InvalidRegionError,
    NoRegionError,
    ParamValidationError,
    ProxyConnectionError,
    SSLError,
)
from botocore.parsers import ResponseParserError

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
from cloud_controller.clouds.common.error_codes import ErrorCodes, typed
from cloud_controller.retries import NeverReached

CODES: Final = ErrorCodes(
    (
        Throttled,
        "DependencyThrottle|EC2ThrottledException|RequestLimitExceeded|RequestThrottled(Exception)?|SlowDown",
        "Throttling(Exception)?|ThrottledException|TooManyRequestsException",
    ),
    (
        AccessDenied,
        "AccessDenied(Exception)?|UnauthorizedOperation|NotAuthorized|AuthFailure|Blocked|OptInRequired",
        "PendingVerification|ExpiredToken(Exception)?|RequestExpired|InvalidClientTokenId|InvalidIdentityToken",
        "IDPRejectedClaim|SignatureDoesNotMatch|IncompleteSignature|MissingAuthenticationToken",
        "UnrecognizedClientException|InvalidAccessKeyId|RegionDisabledException",
    ),
    (
        Unavailable,
        "Unavailable|HealthUnavailable|IDPCommunicationError|InternalError|InternalFailure",
        "ServiceUnavailable(Exception)?",
    ),
    # Missing or duplicate objects that users name: controllers never create them.
    (
        InvalidConfiguration,
        "ALPNPolicyNotFound|AllocationIdNotFound|AvailabilityZoneNotSupported|CertificateNotFound|DuplicateTagKeys",
        "SSLPolicyNotFound|SubnetNotFound",
    ),
    (NotFound, r".*\.NotFound|\w*NotFound(Exception)?|NoSuch\w+"),
    (QuotaExceeded, r"\w*LimitExceeded(Exception)?|\w+AssociationLimit|TooMany\w+|Insufficient\w+|\w*QuotaExceeded\w*"),
    (
        Conflict,
        r"Duplicate\w*|.*\.Duplicate|\w*AlreadyExists\w*|DependencyViolation|\w*InUse(Exception)?|.*\.InUse",
        r"Incorrect\w*State|InvalidState\w*|InvalidTarget|OperationNotPermitted(Exception)?|PriorRequestNotComplete",
    ),
    (
        InvalidConfiguration,
        r"Invalid\w*(\..+)?|Missing\w*(\..+)?|Malformed\w*(\..+)?|Unknown\w*(\..+)?|Unsupported\w*(\..+)?",
        r"Validation\w*(\..+)?|Incompatible\w*(\..+)?",
    ),
)
_REFUSED_TEXT = 300
"""The longest shown text of a refusal: EC2 appends an encoded message of thousands of characters."""


def error_code(error: BaseException) -> str:
    """AWS's error code (`InvalidGroup.NotFound`) behind an error of `cloud_errors`; "" if it has none."""
    cause = error if isinstance(error, ClientError) else error.__cause__
    if not isinstance(cause, ClientError):
        return ""
    return str(cause.response.get("Error", {}).get("Code", ""))


def translated(
    error: BotoCoreError | ClientError | ResponseParserError | OSError, service: str, operation: str
) -> CloudError:
    """The typed error for an exception of boto3 from `operation` of `service`."""
    if isinstance(error, ClientError):
        return _answered(error, service, operation)
    what = f"AWS: {service} {operation}"
    if isinstance(error, ParamValidationError):
        return InvalidConfiguration(f"{service} {operation}", " ".join(str(error).split()))
    if isinstance(error, InvalidRegionError):
        return InvalidConfiguration("cloud config: [Global] Region", _words(error))
    if isinstance(error, NoRegionError):
        return InvalidConfiguration("cloud config: [Global] Region", "missing, and no other source defines the region")
    if isinstance(error, EndpointConnectionError | ConnectTimeoutError | ProxyConnectionError | SSLError):
        return NeverReached(f"{what}: could not connect ({_words(error)}); check the region and the endpoint")
    if isinstance(error, HTTPClientError):
        return Unavailable(f"{what}: no response ({_words(error)})")
    if isinstance(error, ResponseParserError):
        # A proxy or a failing server sent a page of its own: the call's effect is unknown.
        return Unavailable(f"{what}: the response is not from AWS ({_words(error)[:_REFUSED_TEXT]})")
    # No credentials, no such profile, or an unreadable token file: nothing was sent.
    return AccessDenied(f"{what}: no credentials ({_words(error)})")


def _answered(error: ClientError, service: str, operation: str) -> CloudError:
    details = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), str(details.get("Message", "")).strip()
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    # The failed call may be one that fetches credentials.
    asked = getattr(error, "operation_name", operation)
    where = f"{service} {operation}" if asked == operation else f"{asked} (for {service} {operation})"
    text = f"AWS: {where}: {code}: {message}"
    kind = CODES.kind(code, status)
    if kind is AccessDenied:
        text = _refusal(text)
    return typed(kind, text, InvalidConfiguration(f"AWS: {where}", f"{code}: {message}"))


def _refusal(text: str) -> str:
    shown = text.partition("Encoded authorization failure message")[0].rstrip()
    return shown if len(shown) <= _REFUSED_TEXT else f"{shown[:_REFUSED_TEXT]}…"


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
