"""Names and ids that differ from one run to the next, in words that are the same for every run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def said(value: Any, words: Mapping[str, str]) -> Any:
    """The value with every known name in its word; what was in the order of names is in the order of words."""
    match value:
        case str():
            for known in sorted(words, key=len, reverse=True):
                value = value.replace(known, words[known])
            return value
        case dict():
            return {said(key, words): said(part, words) for key, part in value.items()}
        case list():
            parts = [said(part, words) for part in value]
            return sorted(parts) if all(isinstance(part, str) for part in parts) else parts
        case _:
            return value
