"""Translates AWS's errors into those of `cloud_errors`, with AWS's code kept.

The codes are those of the API references' pages "Common errors" and of each operation. EC2's codes look like
`InvalidGroup.NotFound`, ELB's like `LoadBalancerNotFound`; ELBv2's codes lack the `Exception` of their classes' names.
"""

from __future__ import annotations

import re
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
from cloud_controller.retries import NeverReached

_THROTTLED: Final = frozenset(
    {
        "DependencyThrottle",
        "EC2ThrottledException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
_DENIED: Final = re.compile(
    r"AccessDenied(Exception)?|UnauthorizedOperation|NotAuthorized|AuthFailure|Blocked|OptInRequired"
    r"|PendingVerification|ExpiredToken(Exception)?|RequestExpired|InvalidClientTokenId|InvalidIdentityToken"
    r"|IDPRejectedClaim|SignatureDoesNotMatch|IncompleteSignature|MissingAuthenticationToken"
    r"|UnrecognizedClientException|InvalidAccessKeyId|RegionDisabledException"
)
_UNAVAILABLE: Final = frozenset(
    {
        "HealthUnavailable",
        "IDPCommunicationError",
        "InternalError",
        "InternalFailure",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
_NAMED_BY_PEOPLE: Final = frozenset(
    {
        "ALPNPolicyNotFound",
        "AllocationIdNotFound",
        "AvailabilityZoneNotSupported",
        "CertificateNotFound",
        "DuplicateTagKeys",
        "SSLPolicyNotFound",
        "SubnetNotFound",
    }
)
"""Missing or duplicate objects that users name: controllers never create them."""
_MISSING: Final = re.compile(r".*\.NotFound|\w*NotFound(Exception|Fault)?|NoSuch\w+")
_QUOTA: Final = re.compile(
    r"\w*LimitExceeded(Exception)?|\w+AssociationLimit|TooMany\w+|\w*QuotaExceeded\w*|Insufficient\w+"
)
_CONFLICT: Final = re.compile(
    r"Duplicate\w*|.*\.Duplicate|\w*AlreadyExists\w*|DependencyViolation|\w*InUse(Exception)?|.*\.InUse"
    r"|Incorrect\w*State|InvalidState\w*|InvalidTarget|OperationNotPermitted(Exception)?|PriorRequestNotComplete"
)
_INVALID: Final = re.compile(
    r"(Invalid|Missing|Malformed|Unknown|Unsupported|Validation|Incompatible|SSLPolicy)\w*(\..+)?"
)
_REFUSED_TEXT = 300
"""The longest shown text of a refusal: EC2 appends an encoded message of thousands of characters."""

THROTTLED_PAUSE = 1.0
"""The delay in seconds after a throttled call. AWS's responses do not name one."""


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
    if code in _THROTTLED or status == 429:
        return Throttled(text, THROTTLED_PAUSE)
    if _DENIED.fullmatch(code):
        return AccessDenied(_refusal(text))
    if code in _UNAVAILABLE or status >= 500:
        return Unavailable(text)
    if code in _NAMED_BY_PEOPLE:
        return InvalidConfiguration(f"AWS: {where}", f"{code}: {message}")
    if _MISSING.fullmatch(code):
        return NotFound(text)
    if _QUOTA.fullmatch(code):
        return QuotaExceeded(text)
    if _CONFLICT.fullmatch(code):
        return Conflict(text)
    if _INVALID.fullmatch(code):
        return InvalidConfiguration(f"AWS: {where}", f"{code}: {message}")
    return CloudError(text)


def _refusal(text: str) -> str:
    shown = text.partition("Encoded authorization failure message")[0].rstrip()
    return shown if len(shown) <= _REFUSED_TEXT else f"{shown[:_REFUSED_TEXT]}…"


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
