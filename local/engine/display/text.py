"""Lines for people: parts with a tone each, made safe from names and messages of external origin."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TextIO

_COLOUR_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;:]*m")
_ACTING: Final = ("Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn")
"""Unicode categories of characters with an effect of their own: controls, directions, line separators."""


class Tone(StrEnum):
    """The meaning of a part of a line, by the parameter of the ANSI colour sequence that shows it."""

    PLAIN = ""
    CREATE = "32"
    UPDATE = "33"
    DELETE = "31"
    REPLACE = "35"
    READ = "36"
    ERROR = "1;31"
    WARNING = "1;33"
    FAINT = "2"
    TITLE = "1"


@dataclass(frozen=True, slots=True)
class Part:
    """Some text of one tone."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Part, ...]


def line(text: str, tone: Tone = Tone.PLAIN) -> Line:
    """A line of one tone."""
    return (Part(text, tone),)


def indented(lines: list[Line], by: int) -> list[Line]:
    """The lines, further to the right."""
    return [(Part(" " * by), *parts) for parts in lines]


def neutral(text: str) -> str:
    """Text that is safe to show: without colours, and with control characters escaped."""
    # Most text is harmless.
    if text.isprintable():
        return text
    text = _COLOUR_SEQUENCE.sub("", text).replace("\t", "    ")
    return "".join(_spelt(c) if unicodedata.category(c) in _ACTING else c for c in text)


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode()


def plain(parts: Line) -> str:
    """A line without its colours."""
    return "".join(neutral(part.text) for part in parts).rstrip()


def coloured(parts: Line) -> str:
    """A line with colours, for a terminal."""
    shown = [(neutral(part.text), part.tone) for part in parts]
    return "".join(f"\x1b[{tone}m{text}\x1b[0m" if tone and text else text for text, tone in shown).rstrip()


def report_failure(message: str, render: Callable[[Line], str] = plain) -> None:
    """Print on standard error why there was no run, or why it was interrupted."""
    print("\n".join(render(line(text)) for text in f"error: {message}".splitlines()), file=sys.stderr)


class Output:
    """A display's output. When its reader is gone (`| head`) it goes silent, so that the run continues."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._gone = False
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> None:
        """Write and flush. Characters missing in the stream's encoding are escaped."""
        if self._gone or not text:
            return
        try:
            self._stream.write(text.encode(self._encoding, "backslashreplace").decode(self._encoding))
            self._stream.flush()
        except BrokenPipeError:
            self._gone = True
            self._forget()

    def _forget(self) -> None:
        # What is still buffered would fail again when the interpreter ends.
        with contextlib.suppress(io.UnsupportedOperation), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), self._stream.fileno())
