"""Lists a few of many names in a message. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 5, separator: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{separator.join(names[:most])}{more}"
