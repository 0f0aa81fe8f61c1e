"""Access control: the site's own token may do everything, a further one what its globs allow, until it expires.

Only the site's own token may call the admin endpoints and the data plane's; the machines and the site itself use it, so
no expiry ever stops them. The database keeps only digests of further tokens.
"""

from __future__ import annotations

import fnmatch
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

from local.mycloud.errors import PermissionDenied, Unauthorized
from local.mycloud.models.account import CreateToken, IssuedToken
from local.mycloud.models.common import rfc3339
from local.mycloud.store import Session, Store

_SITES_OWN = ("/v1/admin/", "/internal/")

EXPIRED_STAY_SECONDS = 24 * 60 * 60.0
"""For how long an expired token is reported as expired; afterwards it is as unknown as any other."""

_ALWAYS = "POST /v1/access:check"
"""Every token may check its own rights."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a token. `operations`: globs over "METHOD PATH", None: everything that users call."""

    is_sites_own: bool = False
    operations: tuple[str, ...] | None = None

    def allows(self, operation: str) -> bool:
        """Whether the operation ("METHOD PATH") is allowed."""
        if self.is_sites_own or operation == _ALWAYS:
            return True
        if operation.partition(" ")[2].startswith(_SITES_OWN):
            return False
        return self.operations is None or any(fnmatch.fnmatchcase(operation, glob) for glob in self.operations)

    def require(self, operation: str) -> None:
        """Raise `PermissionDenied`, which names the operation, unless it is allowed."""
        if not self.allows(operation):
            raise PermissionDenied(f"this token does not allow {operation}")


SITES_OWN = Access(is_sites_own=True)


def is_same(given: str, token: str) -> bool:
    """Whether two tokens are equal, in constant time."""
    return hmac.compare_digest(given.encode(), token.encode())


def access_of(store: Store, token: str) -> Access:
    """The rights of a further token; raises `Unauthorized` if it is unknown or has expired."""
    with store.read() as session:
        found = session.access_token(_digest(token))
    if found is None:
        raise Unauthorized("the bearer token is missing or wrong")
    expires_at, operations = found
    if expires_at <= time.time():
        raise Unauthorized("the token has expired")
    return Access(operations=None if operations is None else tuple(operations))


def issue(session: Session, request: CreateToken) -> IssuedToken:
    """Create a further token; only this answer contains it."""
    token = secrets.token_urlsafe(32)
    now = time.time()
    expires_at = now + request.ttl_seconds
    session.forget_access_tokens(now - EXPIRED_STAY_SECONDS)
    session.add_access_token(_digest(token), expires_at, request.operations)
    return IssuedToken(token=token, expires_at=rfc3339(expires_at))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
