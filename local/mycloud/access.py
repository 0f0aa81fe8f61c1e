"""Who may do what: the site's own token everything, a further one what its globs allow, until it expires.

Only the site's own token reaches the admin endpoints and the data plane's; the machines and the site itself use it,
so that no expiry ever stops them. Of further tokens the database keeps digests alone.
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
"""For how long an expired token is told that it has expired; then it is a wrong one like any other."""

_ALWAYS = "POST /v1/access:check"
"""Whoever is known may ask what he may do."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a token may do. `operations`: globs over "METHOD PATH", None: all that users call."""

    is_sites_own: bool = False
    operations: tuple[str, ...] | None = None

    def allows(self, operation: str) -> bool:
        """Whether the operation ("METHOD PATH") may be done."""
        if self.is_sites_own or operation == _ALWAYS:
            return True
        if operation.partition(" ")[2].startswith(_SITES_OWN):
            return False
        return self.operations is None or any(fnmatch.fnmatchcase(operation, glob) for glob in self.operations)

    def require(self, operation: str) -> None:
        """Raise `PermissionDenied`, which names the operation, unless it may be done."""
        if not self.allows(operation):
            raise PermissionDenied(f"this token does not allow {operation}")


SITES_OWN = Access(is_sites_own=True)


def is_same(given: str, token: str) -> bool:
    """Whether two tokens are the same, in a time that tells nothing of them."""
    return hmac.compare_digest(given.encode(), token.encode())


def access_of(store: Store, token: str) -> Access:
    """What a further token may do; raises `Unauthorized` if there is none such, or it has expired."""
    with store.read() as session:
        found = session.access_token(_digest(token))
    if found is None:
        raise Unauthorized("the bearer token is missing or wrong")
    expires_at, operations = found
    if expires_at <= time.time():
        raise Unauthorized("the token has expired")
    return Access(operations=None if operations is None else tuple(operations))


def issue(session: Session, request: CreateToken) -> IssuedToken:
    """A further token; the answer is the only place where it ever stands."""
    token = secrets.token_urlsafe(32)
    now = time.time()
    expires_at = now + request.ttl_seconds
    session.forget_access_tokens(now - EXPIRED_STAY_SECONDS)
    session.add_access_token(_digest(token), expires_at, request.operations)
    return IssuedToken(token=token, expires_at=rfc3339(expires_at))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
