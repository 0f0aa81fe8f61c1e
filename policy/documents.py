"""Finds what statements of a policy document allow, in the form that several clouds share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from policy.objects import dig
from policy.unknowns import Problem


def of_statements(document: Any, of: Callable[[int, Mapping[str, Any]], str | None]) -> Iterator[Problem]:
    """What `of` says about each statement, with its index. Nothing where the document, as JSON text, is not valid.

    The cloud reports what is wrong with such a document.
    """
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return
    statements = dig(document, "Statement")
    for index, statement in enumerate([statements] if isinstance(statements, Mapping) else statements or ()):
        yield partial(of, index, statement)


def wildcards(index: int, statement: Mapping[str, Any]) -> str | None:
    """Report a statement that allows `*`, `SERVICE:*`, or everything but something."""
    if dig(statement, "Effect") != "Allow":
        return None
    if dig(statement, "NotAction"):
        return f"Statement[{index}] allows everything but its NotAction"
    wild = [action for action in texts(statement, "Action") if _is_wild(action)]
    return f"Statement[{index}] allows {', '.join(wild)}" if wild else None


def texts(statement: Mapping[str, Any], key: str) -> list[str]:
    """The texts under the key, which has one or a list."""
    found = dig(statement, key)
    return [str(each) for each in ([found] if isinstance(found, str) else found or ())]


def _is_wild(action: str) -> bool:
    """`slb:Describe*` is narrower than its service; `slb:*`, `slb:**` and `*` are not."""
    return not action.partition(":")[2].strip("*")
