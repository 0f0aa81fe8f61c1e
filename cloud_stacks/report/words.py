"""Text from outside as plain text, which neither moves a cursor nor commands a CI system. Pure."""

from __future__ import annotations

import json
from typing import Any

from local.engine.display.text import neutral


def safe(text: str) -> str:
    """The text on one line, without control characters and commands."""
    return without_command(neutral(" ".join(text.split())))


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
