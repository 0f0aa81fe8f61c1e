"""Whether a ServiceAccount's token may assume a role, as STS decides it: by issuer, audience and trust. Pure.

This verifies a stack's chain: the cluster's issuer, the OIDC provider in IAM, the role's trust policy, the token.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from local import identity_tokens
from local.aws.signatures import Refused
from local.identity_tokens import Claims, NotAToken, NotSigned, verify_signature

ACTION = "sts:AssumeRoleWithWebIdentity"
CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Provider:
    """An identity provider in IAM: its ARN, its host and path, and its audiences."""

    arn: str
    url: str
    audiences: Sequence[str]


def claims_of(token: str) -> Claims:
    """The token's unverified claims. Raises Refused."""
    try:
        return identity_tokens.claims_of(token)
    except NotAToken:
        raise Refused("InvalidIdentityToken", "The ID Token provided is not a valid JWT.") from None


def check_token(token: str, public_key: str, provider: Provider, now: datetime | None = None) -> None:
    """Raise Refused unless the issuer's key (PEM) signed it, it has not expired, and is for the provider's audience."""
    claims = claims_of(token)
    try:
        verify_signature(token, public_key)
    except NotAToken:
        raise Refused("InvalidIdentityToken", "The ID Token provided is not a valid JWT.") from None
    except NotSigned:
        raise Refused("InvalidIdentityToken", "The signature of the ID Token is not valid.") from None
    if (now or datetime.now(UTC)) > datetime.fromtimestamp(claims.expires, UTC) + CLOCK_SKEW:
        raise Refused("ExpiredTokenException", "Token expired")
    if not set(claims.audiences) & set(provider.audiences):
        raise Refused("InvalidIdentityToken", "Incorrect token audience")


def check_trust(policy: Mapping[str, Any], token: str, provider: Provider) -> None:
    """Raise Refused unless a statement of the role's trust policy admits the token's subject, and none denies it.

    Supported conditions are StringEquals and StringLike on `sub` and `aud`; a statement with any other admits nothing.
    A statement that denies does so whatever its conditions.
    """
    claims = claims_of(token)
    values = {f"{provider.url}:sub": [claims.subject], f"{provider.url}:aud": list(claims.audiences)}
    statements = [each for each in _list(policy.get("Statement")) if ACTION in _list(each.get("Action"))]
    denied = any(each.get("Effect") == "Deny" for each in statements)
    if denied or not any(_lets_in(each, provider, values) for each in statements):
        raise Refused("AccessDenied", f"Not authorized to perform {ACTION}")


def _lets_in(statement: Mapping[str, Any], provider: Provider, values: Mapping[str, list[str]]) -> bool:
    principal = statement.get("Principal")
    federated = _list(principal.get("Federated")) if isinstance(principal, dict) else []
    conditions = statement.get("Condition") or {}
    allows = statement.get("Effect") == "Allow" and provider.arn in federated
    return allows and all(
        operator in ("StringEquals", "StringLike") and _matches(operator, values.get(key, []), _list(allowed))
        for operator, keys in conditions.items()
        for key, allowed in keys.items()
    )


def _matches(operator: str, values: list[str], allowed: list[str]) -> bool:
    if operator == "StringEquals":
        return bool(set(values) & set(allowed))
    return any(fnmatch.fnmatchcase(value, pattern) for value in values for pattern in allowed)


def _list(value: Any) -> list[Any]:
    """IAM's documents and tokens have one value or a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
