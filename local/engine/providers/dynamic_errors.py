"""What people are told of an exception in the code of a dynamic provider, which arrives as a traceback. Pure."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 10_000
"""Characters; more than that nobody reads, and a terminal is flooded."""
_QUALIFIED_ERROR: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)(?=:|$)")


def told(traceback: str) -> str:
    """The error in the words of a person, of bounded length; what is no traceback is told as it is."""
    message = _explained(last_line(traceback), traceback)
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}… (cut)"


def last_line(traceback: str) -> str:
    """What a Python traceback says at its end, the error's type without its module: that is what a person needs."""
    lines = traceback.rstrip().splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    if not lines or not lines[0].startswith("Traceback") or not frames:
        return traceback.strip()
    # Frames are indented; the message stands after the last frame and may itself be indented only from its second line.
    start = max(i for i, line in enumerate(lines) if line.startswith('  File "'))
    message = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines) - 1)
    return _QUALIFIED_ERROR.sub(r"\1", "\n".join(lines[message:]))


def _explained(message: str, traceback: str) -> str:
    """The message; with advice where the class that manages the resource is not where it was pickled from."""
    if "in deserialize" not in traceback or not message.startswith(("ModuleNotFoundError", "AttributeError")):
        return message
    return f"{message}; the program's folder no longer has the class that manages it: bring it back until it is deleted"
