"""Text from outside as plain text, which neither moves a cursor nor commands a CI system. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Final

_COLOUR_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;:]*m")
_ACTING: Final = ("Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn")
"""Unicode categories of characters with an effect of their own: controls, directions, line separators."""


def safe(text: str) -> str:
    """The text on one line, without control characters and commands."""
    return without_command(neutral(" ".join(text.split())))


def neutral(text: str) -> str:
    """Text that is safe to show: without colours, and with control characters escaped."""
    # Most text is harmless.
    if text.isprintable():
        return text
    text = _COLOUR_SEQUENCE.sub("", text).replace("\t", "    ")
    return "".join(_spelt(c) if unicodedata.category(c) in _ACTING else c for c in text)


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode()


def without_command(line: str) -> str:
    """A line that no CI system executes.

    GitHub's runner executes one that begins with `::` after spaces, and `##[` anywhere; Azure's `##vso[`.
    """
    line = line.replace("##[", "#\\#[").replace("##vso[", "#\\#vso[")
    text = line.lstrip()
    return f"{line[: -len(text)]}\\{text}" if text.startswith("::") else line


def safe_json(value: Any) -> str:
    """A JSON document that commands nobody where a log shows it."""
    return json.dumps(value, indent=2).replace("##", "#\\u0023") + "\n"


def number(count: int, one: str, many: str = "") -> str:
    """`1 resource`, `2 resources`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
