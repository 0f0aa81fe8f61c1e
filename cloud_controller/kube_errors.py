"""The exceptions of Kubernetes API requests. Each message names the request.

`cloud_controller.kube` re-exports those that callers need.

ApiError
├── ConflictError              409: the object has changed, a precondition failed, or a field has another manager
│   └── AlreadyExistsError     409: an object with this name exists
├── ForbiddenError             403: RBAC or admission forbids the request
├── GoneError                  410: the resource version is too old
├── InvalidError               400, 422: the object or the request is invalid
├── NotFoundError              404: the object does not exist
├── NotServedError             404 not in the API's words: a proxy's, or for a kind that the server does not have
├── TooManyRequestsError       429: the server rejects requests for now
├── UnauthorizedError          401: the credentials are invalid or expired
└── UnreachableError           no response; A WRITE MAY HAVE SUCCEEDED
    └── TlsError               no TLS connection, for example because the certificate is not trusted
"""

from __future__ import annotations

from typing import Any, ClassVar

import orjson


class ApiError(Exception):
    """Base class: a request to the API server failed."""

    def __init__(self, status: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 without a response."""
        self.reason = reason
        """The `reason` of the response's Status object, for example `AlreadyExists`."""
        self.message = message
        self.details = details or {}
        """The Status object's `details`: name, kind, causes."""
        self.retry_after: float | None = None
        """Seconds to wait, from the response's Retry-After (429 and 503)."""
        self.body = b""
        """The response's body, as it came."""


class NotFoundError(ApiError):
    """404: the API server says that the object does not exist; of `Kube.resource`, the kind."""


class NotServedError(ApiError):
    """404 not in the API's words: a proxy's, or for a kind that the server does not have. NO OBJECT IS GONE BY IT."""


class ConflictError(ApiError):
    """409: the object has changed, a precondition failed, or another field manager owns a field."""


class AlreadyExistsError(ConflictError):
    """409 `AlreadyExists`: an object with this name exists."""


class GoneError(ApiError):
    """410: the resource version is too old; list again."""


class ForbiddenError(ApiError):
    """403: RBAC or admission forbids the request; the message names user, verb and resource."""


class UnauthorizedError(ApiError):
    """401: the credentials are invalid or expired."""


class InvalidError(ApiError):
    """422 or 400: the object or the request is invalid; `details["causes"]` names the fields."""

    def names(self, field: str) -> bool:
        """Whether this field (`metadata.uid`) is one of those that the server refuses."""
        return any(cause.get("field") == field for cause in self.details.get("causes") or ())


class TooManyRequestsError(ApiError):
    """429: the server still rejects requests after the client's own retries."""


class UnreachableError(ApiError):
    """No response: the server is down, the address is wrong, or the connection broke."""

    reason_text: ClassVar[str] = "Unreachable"

    def __init__(self, message: str) -> None:
        super().__init__(0, self.reason_text, message)


class TlsError(UnreachableError):
    """No TLS connection: the server or its certificate is not the expected one."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def from_response(status: int, body: bytes, asked: str, retry_after: float | None = None) -> ApiError:
    """The error for an HTTP response; `asked`: the request, for example `GET /api/v1/nodes/a`."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = {"message": body[:500].decode(errors="replace")}
    if not isinstance(answer, dict):
        answer = {"message": str(answer)[:500]}
    if status == 404 and answer.get("kind") != "Status":
        why = "HTTP 404, not in the API's words: a proxy answered, or the server does not have this kind"
        error: ApiError = NotServedError(404, "NotServed", f"{asked}: {answer.get('message') or 'no message'} ({why})")
    else:
        error = from_status(answer, asked, status, retry_after)
    error.body = body
    return error


def from_status(
    status_object: dict[str, Any], asked: str, status: int | None = None, retry_after: float | None = None
) -> ApiError:
    """The error for a Kubernetes `Status` object (a response body, or the ERROR event of a watch)."""
    code = status if status is not None else int(status_object.get("code") or 500)
    reason = str(status_object.get("reason") or "Unknown")
    message = f"{asked}: {status_object.get('message') or reason} (HTTP {code})"
    kind = AlreadyExistsError if reason == "AlreadyExists" else _BY_STATUS.get(code, ApiError)
    error = kind(code, reason, message, status_object.get("details"))
    error.retry_after = retry_after
    return error
