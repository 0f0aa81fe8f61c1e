"""Whether a role's policies name a call at all. Pure.

Resources and conditions are ignored: a call denied here is denied in AWS, one allowed here may not be.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

ALWAYS = frozenset({"sts:GetCallerIdentity"})
"""AWS requires no policy for it."""


def permits(policies: Iterable[Mapping[str, Any]], action: str) -> bool:
    """Whether the policies allow `service:Operation`, and no statement without conditions denies it everywhere."""
    statements = [statement for policy in policies for statement in _list(policy.get("Statement"))]
    denied = any(_denies_everywhere(statement) and _names(statement, action) for statement in statements)
    allowed = any(statement.get("Effect") == "Allow" and _names(statement, action) for statement in statements)
    return action in ALWAYS or (allowed and not denied)


def _denies_everywhere(statement: Mapping[str, Any]) -> bool:
    return (
        statement.get("Effect") == "Deny" and not statement.get("Condition") and "*" in _list(statement.get("Resource"))
    )


def _names(statement: Mapping[str, Any], action: str) -> bool:
    """IAM's actions are case-insensitive, with `*` and `?` in patterns."""
    if "NotAction" in statement:
        return not _any_matches(statement["NotAction"], action)
    return _any_matches(statement.get("Action"), action)


def _any_matches(patterns: Any, action: str) -> bool:
    return any(fnmatch.fnmatchcase(action.lower(), pattern.lower()) for pattern in _list(patterns))


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
