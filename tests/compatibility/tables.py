"""The differences between two controllers as a table of a page."""

from __future__ import annotations

from collections.abc import Iterable

from tests.compatibility.differences import Difference

_HEAD = """
| {what} | field | the Go controller | this one | why |
|---|---|---|---|---|
"""


def table(differences: Iterable[Difference], what: str = "Services") -> str:
    """In Markdown; `what`: of which things the differences are."""
    rows = (
        f"| {_code(each.services)} | {_code(each.fields)} | {each.peer} | {each.ours} | {each.reason} |\n"
        for each in differences
    )
    return _HEAD.format(what=what) + "".join(rows)


def _code(patterns: str) -> str:
    return ", ".join(f"`{pattern}`" for pattern in patterns.split("|"))
