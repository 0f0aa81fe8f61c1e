"""Reads policy documents, in the form that several clouds share, and finds what their statements allow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from cloud_controller import patterns
from policy.objects import dig
from policy.unknowns import Problem

Statement = Mapping[str, Any]
Of = Callable[[Statement], str | None]
"""What is wrong with one statement."""


def of_statements(document: Any, *of: Of, where: str = "") -> Iterator[Problem]:
    """What each of `of` says about each statement, with its place; nothing where there is no document.

    A document, as JSON text, is a problem itself where it can't be read, or has a key twice. `where`: the property
    that holds it, where a resource has several.
    """
    at = f"{where}: " if where else ""
    if isinstance(document, str):
        document, wrong = _read(document)
        for each in wrong:
            yield partial(_said, f"{at}{each}")
    if document is None:
        return
    statements = dig(document, "Statement")
    if not statements:
        yield partial(_said, f"{at}the policy document has no Statement")
        return
    for index, statement in enumerate([statements] if isinstance(statements, Mapping) else statements):
        for judge in of:
            yield partial(_of_statement, f"{at}Statement[{index}]", statement, judge)


def allows(statement: Statement) -> bool:
    """Whether it allows something, and does not deny it."""
    return bool(dig(statement, "Effect") == "Allow")


def wildcards(statement: Statement) -> str | None:
    """Report a statement that allows `*`, `SERVICE:*`, or everything but something."""
    if not allows(statement):
        return None
    if dig(statement, "NotAction"):
        return "allows everything but its NotAction"
    if wild := [action for action in texts(statement, "Action") if is_wild(action)]:
        return f"allows {', '.join(wild)}"
    if dig(statement, "NotResource"):
        return f"allows {', '.join(texts(statement, 'Action'))} on everything but its NotResource"
    return None


def texts(statement: Any, key: str) -> list[str]:
    """The texts under the key, which has one or a list."""
    found = dig(statement, key)
    return [str(each) for each in ([found] if isinstance(found, str) else found or ())]


def is_wild(action: str) -> bool:
    """`slb:Describe*` is narrower than its service; `slb:*`, `slb:?*`, `s*:Describe*` and `*` are not."""
    service, _, operation = action.partition(":")
    return not operation.strip("*?") or "*" in service or "?" in service


def matches(pattern: str, text: str) -> bool:
    """Whether a text is meant by a pattern with `*` and `?`, whatever its case."""
    expression = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return patterns.is_whole(f"(?is)(?:{expression})", text)


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[Any, tuple[str, ...]]:
    """The content of a document, None if it can't be read, and what is wrong with the text, which is not shown."""
    twice: dict[str, None] = {}

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                twice[key] = None
            found[key] = value
        return found

    try:
        content = json.loads(text, object_pairs_hook=as_dict)
    except ValueError:
        return None, ("the policy document is not valid JSON, so nobody can tell what it allows",)
    if not isinstance(content, dict):
        return None, ("the policy document is not a JSON object, so nobody can tell what it allows",)
    return content, tuple(
        f"the policy document has the key {key} twice: which one counts is not certain" for key in twice
    )


def _of_statement(where: str, statement: Statement, of: Of) -> str | None:
    said = of(statement)
    return f"{where} {said}" if said else None


def _said(text: str) -> str:
    return text
