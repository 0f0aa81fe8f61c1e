"""Translates Alibaba Cloud's error codes into the errors of `cloud_errors`, with the code kept.

The codes are those of the products' API references and of what Alibaba's own Terraform provider waits out.
"""

from __future__ import annotations

import re
from typing import Final

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
from cloud_controller.retries import RETRY_AFTER

CODES: Final = ErrorCodes(
    (Throttled, r"Throttl\w*(\..+)?|.+\.Throttl\w*|\w*FlowControl\w*(\..+)?|TooManyRequests|QpsLimit\w*(\..+)?"),
    (
        AccessDenied,
        r"Forbidden(\..+)?|NoPermission(\..+)?|\w*Unauthorized\w*(\..+)?|NotAuthorized(\..+)?|AccessDenied(\..+)?",
        r"InvalidAccessKeyId(\..+)?|InvalidAccessKeySecret|InactiveAccessKey|InvalidSecurityToken(\..+)?",
        r"MissingSecurityToken|MalformedSecurityToken|SignatureDoesNotMatch|IncompleteSignature|InvalidTimeStamp(\..+)?",
        r"SignatureNonceUsed|AuthenticationFail(\..+)?|EntityNotExist\.Role|InvalidParameter\.OIDC\w*|OIDC\w*(\..+)?",
    ),
    (
        Unavailable,
        r"Internal\w*(\..+)?|ServiceUnavailable(\..+)?|UnknownError|SystemBusy|.+\.SystemBusy|BackendServer\.error",
        r"RequestTimeout|LastTokenProcessing|IdempotentProcessing|OperationFailed\.LastTokenProcessing",
    ),
    # What users name in annotations and configuration; a read of the controller's own objects never has these.
    (
        InvalidConfiguration,
        r"\w*VSwitch\w*NotExist\w*|\w*SecurityGroup\w*NotExist\w*|\w*Certificate\w*NotExist\w*",
        r"\w*ResourceGroup\w*NotExist\w*|\w*Eip\w*NotExist\w*",
    ),
    # The request went to the wrong place: it says nothing of the object that it names, and must not make it look gone.
    (
        InvalidConfiguration,
        r"InvalidAction\.NotFound|InvalidApi\.NotFound|InvalidProduct\.NotFound|InvalidRegionId\.NotFound",
    ),
    (
        NotFound,
        r"(.+\.)?\w*NotFound(\..+)?|(.+\.)?\w*NotExists?(ed)?(\..+)?",
        r"[A-Z_.]+[._]NOT[._]EXISTS?|[A-Z_.]+[._]NOT[._]FOUND",
    ),
    (
        QuotaExceeded,
        r"(.+\.)?\w*Quota\w*(\..+)?|(.+\.)?\w*LimitExceed\w*(\..+)?|(.+\.)?TooMany\w*|\w*ExceedLimit\w*(\..+)?",
        r"[A-Z_]*QUOTA[A-Z_]*|OperationDenied\.NoStock|InsufficientCapacity|(\w+\.)?NotEnoughBalance|Account\.Arrearage",
    ),
    (
        Conflict,
        r"\w*Conflict(\..+)?|OperationFailed(\..+)?",
        r"Incorrect\w*(\..+)?|InvalidStatus(\..+)?|\w*StatusNotSupport\w*|(.+\.)?\w*[Cc]onfiguring(\..+)?",
        r"\w*IsStopping(\..+)?|\w*IsStarting(\..+)?",
        r"(.+\.)?\w*InUse(\..+)?|DependencyViolation(\..+)?|OperationDenied(\..+)?",
        r"(.+\.)?\w*Duplicate\w*|[A-Z_]+_DUPLICATE|[A-Z_]+_STATUS_ERROR|(.+\.)?\w*Already\w+(\..+)?",
        r"Idempot\w*Mis[Mm]atch(\..+)?|IdempotenceParamNotMatch|\w*DeleteProtection\w*(\..+)?|\w*DeletionProtection\w*(\..+)?",
    ),
    (
        InvalidConfiguration,
        r"Invalid\w*(\..+)?|Illegal\w*(\..+)?|Missing\w*(\..+)?|Malformed\w*(\..+)?|Unsupported\w*(\..+)?",
        r"NotSupport\w*(\..+)?|Mismatch\w*(\..+)?|Param\w*(\..+)?|Mandatory\w*(\..+)?",
    ),
)

_CREDENTIALS = ("InvalidAccessKeyId", "InvalidAccessKeySecret", "InactiveAccessKey", "InvalidSecurityToken")
_SECRET_FROM = re.compile(r"server\s*(string\s*to\s*sign|canonical\s*request)", re.IGNORECASE)
"""Where the API begins to quote the signed headers, which include the session token."""


class Refusal(Exception):
    """The API's answer to a call that it refused: the cause of the typed error."""

    def __init__(self, code: str, message: str, status: int, request_id: str) -> None:
        super().__init__(f"{code} (HTTP {status}, request {request_id})")
        self.code = code
        self.message = message
        self.status = status
        self.request_id = request_id


def error_code(error: BaseException) -> str:
    """Alibaba Cloud's code (`ResourceInUse.serverGroup`) behind an error of `cloud_errors`; "" if it has none."""
    return error.__cause__.code if isinstance(error.__cause__, Refusal) else ""


def names_credentials(error: CloudError) -> bool:
    """Whether the API refused the credentials themselves, so that fresh ones may help."""
    return error_code(error).partition(".")[0] in _CREDENTIALS


def translated(refusal: Refusal, what: str, retry_after: float = RETRY_AFTER) -> CloudError:
    """The typed error for the API's answer to `what` (`slb CreateLoadBalancer`). Raise it from the refusal."""
    return of_code(refusal.code, refusal.message, what, refusal.status, refusal.request_id, retry_after)


def of_code(
    code: str, message: str, what: str, status: int = 0, request_id: str = "", retry_after: float = RETRY_AFTER
) -> CloudError:
    """The typed error for a code that stands in an answer, such as that of one route among many."""
    told = _SECRET_FROM.split(message, maxsplit=1)[0]
    words = f"{code}: {told.strip()}" + (f" (request {request_id})" if request_id else "")
    where = f"Alibaba Cloud: {what}"
    return typed(CODES.kind(code, status), f"{where}: {words}", InvalidConfiguration(where, words), retry_after)
