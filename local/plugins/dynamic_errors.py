"""Turns a traceback from the code of a dynamic provider into a message for people. Pure."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 10_000
"""Characters; longer messages are not read, and flood a terminal."""
_QUALIFIED_ERROR: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)(?=:|$)")


def message_of(traceback: str) -> str:
    """The error as a message of limited length; a text that is not a traceback stays as it is."""
    message = _explained(last_line(traceback), traceback)
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}… (cut)"


def last_line(traceback: str) -> str:
    """The end of a Python traceback, with the error's type without its module."""
    lines = traceback.rstrip().splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    if not lines or not lines[0].startswith("Traceback") or not frames:
        return traceback.strip()
    # Frames are indented; the message follows the last frame and may itself be indented only from its second line.
    start = max(i for i, line in enumerate(lines) if line.startswith('  File "'))
    message = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines) - 1)
    return _QUALIFIED_ERROR.sub(r"\1", "\n".join(lines[message:]))


def _explained(message: str, traceback: str) -> str:
    """The message, with advice where the resource's pickled class is not where it was."""
    if "in deserialize" not in traceback or not message.startswith(("ModuleNotFoundError", "AttributeError")):
        return message
    return f"{message}; the program no longer has the provider's class: restore it for the deletion"
