"""Finds trust policies by which too many may take a role, in the form that several clouds share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policy.documents import Statement, allows, texts
from policy.objects import dig

_WHO = re.compile(r"(Principal|Source(Account|Arn|Org))\w*", re.IGNORECASE)
"""The keys of conditions on who takes a role, without their prefix."""
_POSITIVE = re.compile(r"(For(Any|All)Values?:)?(String(Equals|Like)(IgnoreCase)?|Arn(Equals|Like))(IfExists)?", re.I)
"""Operators that let only the values pass."""
_LENIENT = re.compile(r"ForAllValues:|IfExists$", re.IGNORECASE)
"""Operators that let everyone pass to whom the key does not apply."""
_ACCOUNTS = "system:serviceaccount:"
_SOME_ACCOUNTS = re.compile(rf"{_ACCOUNTS}[^*?:][^:]*:[^:]*[^*?:][^:]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a cloud's trust policies name what they have in common with those of others."""

    prefix: str
    """Of the keys of its own conditions, such as `PREFIX:PrincipalArn`."""
    every_account: re.Pattern[str]
    """The principals of all accounts, besides `*`."""


def too_open(words: Words, statement: Statement) -> str | None:
    """Why a statement of a trust policy lets too many take the role; None if it does not."""
    if not allows(statement):
        return None
    if dig(statement, "NotPrincipal"):
        return "lets everyone but its NotPrincipal take the role"
    if _is_for_everyone(words, statement) and not any(
        _limits(words, *condition) for condition in _conditions(statement)
    ):
        return "lets everyone take the role (Principal *)"
    return _of_tokens(statement) if _is_for_tokens(statement) else None


def _of_tokens(statement: Statement) -> str | None:
    subjects = [value for key, _, values in _conditions(statement) for value in values if key.lower().endswith(":sub")]
    if not subjects:
        return "lets every ServiceAccount of the cluster take the role: no condition on the token's subject (:sub)"
    like = [
        value
        for key, operator, values in _conditions(statement)
        for value in values
        if key.lower().endswith(":sub") and "like" in operator.lower() and _is_every_account(value)
    ]
    return f"lets every ServiceAccount take the role that is like {', '.join(like)}" if like else None


def _is_every_account(pattern: str) -> bool:
    """Whether it means every ServiceAccount, every one of a namespace, or one name in every namespace."""
    literal = re.split("[*?]", pattern)[0]
    if literal == pattern or not (literal.startswith(_ACCOUNTS) or _ACCOUNTS.startswith(literal)):
        return False
    return not _SOME_ACCOUNTS.fullmatch(pattern)


def _is_for_tokens(statement: Statement) -> bool:
    """Whether it is for an OIDC provider of the account's own; others, such as Cognito, have no ARN."""
    names = texts(dig(statement, "Principal"), "Federated")
    web = any(action.lower().endswith(":assumerolewithwebidentity") for action in texts(statement, "Action"))
    return any(":oidc-provider/" in name or (web and name.startswith("arn:")) for name in names)


def _is_for_everyone(words: Words, statement: Statement) -> bool:
    principal = dig(statement, "Principal")
    names = [principal] if isinstance(principal, str) else [*_values(principal)]
    return any(name == "*" or words.every_account.fullmatch(name) for name in names)


def _limits(words: Words, key: str, operator: str, values: Sequence[str]) -> bool:
    """Whether a condition says who may take the role, besides the principal."""
    prefix, _, rest = key.partition(":")
    if _LENIENT.search(operator) or any(not value.strip("*?") for value in values):
        return False
    return prefix.lower() == words.prefix and bool(_WHO.fullmatch(rest))


def _values(principal: Any) -> Iterator[str]:
    if isinstance(principal, Mapping):
        for kind in principal:
            yield from texts(principal, kind)


def _conditions(statement: Statement) -> Iterator[tuple[str, str, list[str]]]:
    """Key, operator and values of the conditions that let only the values pass."""
    conditions = dig(statement, "Condition") or {}
    for operator in conditions:
        if _POSITIVE.fullmatch(operator):
            for key in conditions[operator]:
                yield key, operator, texts(conditions[operator], key)
