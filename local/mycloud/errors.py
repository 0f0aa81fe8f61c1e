"""The errors of mycloud's API: each has one HTTP status and one code of the contract."""

from __future__ import annotations

from local.mycloud.models.common import ErrorDetail


class ApiError(Exception):
    """A rejected call. `status` is HTTP's, `code` the contract's."""

    status = 500
    code = "Internal"

    def __init__(self, message: str, *, field: str | None = None, allowed: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.allowed = allowed

    @property
    def detail(self) -> ErrorDetail:
        """The error in the form of an answer."""
        return ErrorDetail(code=self.code, message=self.message, field=self.field, allowed=self.allowed)


class InvalidParameter(ApiError):
    """A parameter is invalid; `field` names it and `allowed` says what is valid."""

    status = 400
    code = "InvalidParameter"


class Unauthorized(ApiError):
    """The bearer token is missing or wrong."""

    status = 401
    code = "Unauthorized"


class PermissionDenied(ApiError):
    """The token does not allow the operation."""

    status = 403
    code = "PermissionDenied"


class QuotaExceeded(ApiError):
    """The site holds as many objects of this kind as it can."""

    status = 403
    code = "QuotaExceeded"


class NotFound(ApiError):
    """The object named by the path does not exist."""

    status = 404
    code = "NotFound"


class Conflict(ApiError):
    """The state of this or another object forbids the change."""

    status = 409
    code = "Conflict"


class IdempotencyConflict(ApiError):
    """The idempotency token was used with another body."""

    status = 409
    code = "IdempotencyConflict"


class Throttled(ApiError):
    """Too many calls; `retry_after` is in seconds."""

    status = 429
    code = "Throttled"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(ApiError):
    """The requested service is unavailable at the moment."""

    status = 503
    code = "Unavailable"
