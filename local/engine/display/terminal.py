"""Redraws lines in one place of a terminal without flicker; hides the cursor meanwhile."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, TextIO

from local.engine.display.text import Line, Output, coloured, plain

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_HOLD, _RELEASE = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: show everything in between at once; terminals without it ignore the sequences."""
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_TOP: Final = "\x1b[H"


def width_of(text: str) -> int:
    """How many columns a text takes: two for ideographs and emoji, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


@lru_cache(maxsize=4096)
def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


class Terminal:
    """A terminal whose last lines are redrawn. Not safe from several threads at once."""

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self._out = Output(stream)
        self._stream = stream
        self._render = coloured if colour else plain
        self._drawn: list[str] = []
        self._size = os.terminal_size((0, 0))
        self._hidden = False

    def size(self) -> os.terminal_size:
        """Its current columns and lines; the usual 80 by 24 if unknown."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except OSError:
            size = os.terminal_size((0, 0))
        return os.terminal_size((size.columns or 80, size.lines or 24))

    def draw(self, lines: Sequence[Line]) -> None:
        """Show the lines in place of those drawn before. None may be as wide as the terminal."""
        texts = [self._render(parts) for parts in lines]
        size = self.size()
        shrunk = size.columns < self._size.columns or size.lines < self._size.lines
        if texts == self._drawn and not shrunk:
            return
        # A narrower window has wrapped the lines, so their start is unknown.
        start = _TOP + _ERASE_BELOW if shrunk else self._back()
        body = "\r\n".join(text + _ERASE_LINE for text in texts)
        hide = "" if self._hidden else _HIDE
        self._out.write(f"{_HOLD}{hide}{start}{body}{_ERASE_BELOW}{_RELEASE}")
        self._drawn, self._size, self._hidden = texts, size, True

    def say(self, lines: Sequence[Line]) -> None:
        """Write lines that stay, above the drawing."""
        drawn = self._drawn
        said = "".join(f"{self._render(parts)}\r\n" for parts in lines)
        body = "\r\n".join(text + _ERASE_LINE for text in drawn)
        self._out.write(f"{_HOLD}{self._back()}{_ERASE_BELOW}{said}{body}{_RELEASE}")

    def stop(self) -> None:
        """Erase the drawing, and show the cursor."""
        if self._hidden:
            self._out.write(self._back() + _ERASE_BELOW + _SHOW)
            self.forget()

    def lend(self) -> None:
        """Show the cursor below the drawing. For signal handlers: does not wait for a running write."""
        os.write(self._stream.fileno(), f"\r\n{_SHOW}".encode())

    def forget(self) -> None:
        """Draw next at the cursor: another process has written meanwhile."""
        self._drawn, self._hidden = [], False

    def _back(self) -> str:
        above = len(self._drawn) - 1
        return "\r" + (f"\x1b[{above}A" if above > 0 else "")
