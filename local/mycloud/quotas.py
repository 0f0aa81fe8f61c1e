"""The limits of the account; they are durable, and only the admin endpoint changes them."""

from __future__ import annotations

from local.mycloud.errors import QuotaExceeded
from local.mycloud.models.account import Limits, UpdateLimits
from local.mycloud.store import Session


def limits(session: Session) -> Limits:
    """The current limits."""
    return Limits.model_validate(session.limits())


def set_limits(session: Session, request: UpdateLimits) -> Limits:
    """Change the given limits; what exceeds a lower one stays, but nothing can be added to it."""
    session.set_limits(request.model_dump(exclude_none=True))
    return limits(session)


def require(session: Session, name: str, used: int, adding: int = 1, *, of: str | None = None) -> None:
    """Raise `QuotaExceeded` unless `adding` more fit beside `used` objects (`of` something, or of the account)."""
    limit: int = getattr(limits(session), name)
    if adding > 0 and used + adding > limit:
        where = f" by {of}" if of else ""
        raise QuotaExceeded(f"quota {name}: the limit is {limit}, {used} are in use{where}, {adding} more requested")
