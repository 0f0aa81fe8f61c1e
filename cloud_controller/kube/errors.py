"""What can go wrong when the Kubernetes API is called: one small family of errors, each saying what was asked."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson


class ApiError(Exception):
    """The API server refused a request, or could not be reached (`UnreachableError`)."""

    def __init__(self, status: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 where no answer came."""
        self.reason = reason
        """The machine-readable reason of the answer's Status object, for example `AlreadyExists`."""
        self.message = message
        self.details = details or {}
        """The Status object's `details`: name, kind, causes."""
        self.retry_after = 1.0
        """Seconds that the server asks to wait (429 and 503); 1 where it does not say."""


class NotFoundError(ApiError):
    """404: no such object, or no such kind of object."""


class ConflictError(ApiError):
    """409: the object changed meanwhile, a precondition does not hold, or another field manager owns a field."""


class AlreadyExistsError(ConflictError):
    """409 `AlreadyExists`: an object of this name exists."""


class GoneError(ApiError):
    """410: the resource version is too old; list again."""


class ForbiddenError(ApiError):
    """403: RBAC (or admission) forbids it; the message names the user, the verb and the resource."""


class UnauthorizedError(ApiError):
    """401: the credentials are wrong or expired."""


class InvalidError(ApiError):
    """422 or 400: the object or the request is malformed; `details["causes"]` names the fields."""


class TooManyRequestsError(ApiError):
    """429: the server refuses more requests for now, even after the client's own retries."""


class UnreachableError(ApiError):
    """No answer came: the server is down, the address is wrong, or its certificate is not trusted."""

    reason_text: ClassVar[str] = "Unreachable"

    def __init__(self, message: str) -> None:
        super().__init__(0, self.reason_text, message)


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
    """The error of an HTTP answer; `asked` says what was asked, for example `GET /api/v1/nodes/a`."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = {"message": body[:500].decode(errors="replace")}
    if not isinstance(answer, dict):
        answer = {"message": str(answer)[:500]}
    return from_status(answer, asked, status, retry_after)


def from_status(
    status_object: dict[str, Any], asked: str, status: int | None = None, retry_after: float | None = None
) -> ApiError:
    """The error that a Kubernetes `Status` object describes (an answer's body, or a watch's ERROR event)."""
    code = status if status is not None else int(status_object.get("code") or 500)
    reason = str(status_object.get("reason") or "Unknown")
    message = f"{asked}: {status_object.get('message') or reason} (HTTP {code})"
    kind = AlreadyExistsError if reason == "AlreadyExists" else _BY_STATUS.get(code, ApiError)
    error = kind(code, reason, message, status_object.get("details"))
    if retry_after is not None:
        error.retry_after = retry_after
    return error
