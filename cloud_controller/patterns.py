"""Patterns against text of others, in time linear in the text: RE2, as the API server and Go match them. Pure.

Python's `re` backtracks, and HOLDS THE INTERPRETER meanwhile: one annotation could stop every thread, and with them the
renewal of the Lease. So no text of a Service's author becomes a pattern of `re` or `fnmatch`. The catalogues' patterns,
which are within RE2's syntax for the admission policies, are matched here too, so both say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase

import re2

LONGEST = 255
"""Characters of a pattern that an author gives; the names that it is for are not longer."""
_MEMORY = 1 << 20
"""Bytes for a pattern, and for what RE2 remembers of its states."""
_OF_AUTHOR = 1 << 16
"""For an author's: some 2,700 instructions, each taken at most once for each character of a text."""
_KEPT = 1024
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class InvalidPattern(ValueError):
    """Not within RE2's syntax, too long or too large; the message says which."""


def is_whole(pattern: str, text: str) -> bool:
    """Whether the whole text matches this pattern of ours, or of the administrator. Raises InvalidPattern."""
    return _whole(pattern)(_bytes(text)) is not None


def of_author(pattern: str, *, is_glob: bool) -> Callable[[str], bool]:
    """Whether a text matches what a Service's author gives: as a whole a glob, in part an expression of RE2.

    Raises InvalidPattern.
    """
    if len(pattern) > LONGEST:
        raise InvalidPattern(f"it has {len(pattern):,} characters, of at most {LONGEST}")
    compiled = _compiled(glob(pattern) if is_glob else pattern, _OF_AUTHOR)
    found = compiled.fullmatch if is_glob else compiled.search
    return lambda text: found(_bytes(text)) is not None


def any_case(text: str) -> str:
    """The pattern of this text in upper and lower case. `(?i)` of RE2 also takes the long s (U+017F) for an s."""
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else re.escape(c) for c in text)


def lower(text: str) -> str:
    """The text with A to Z in lower case, as `lowerAscii` of CEL: `str.lower` makes a k of the Kelvin sign too."""
    return text.translate(_LOWER)


def glob(pattern: str) -> str:
    """The pattern of a file name (`*`, `?`, `[a-z]`) as a regular expression, for a whole text."""
    found = ""
    for part in re.split(r"(\*|\?|\[!?\]?[^\]]*\])", pattern):
        if part in ("*", "?"):
            found += "(?s:.*)" if part == "*" else "(?s:.)"
        elif part.startswith("[") and part.endswith("]"):
            negated = part.startswith("[!")
            characters = re.sub(r"([][^\\])", r"\\\1", part[2:-1] if negated else part[1:-1])
            found += f"[{'^' if negated else ''}{characters}]"
        else:
            found += re.escape(part)
    return found


@lru_cache(_KEPT)
def _whole(pattern: str) -> Callable[[bytes], object]:
    return _compiled(pattern, _MEMORY).fullmatch


def _compiled(pattern: str, memory: int) -> re2._Regexp[bytes]:
    options = re2.Options()
    options.max_mem, options.log_errors = memory, False
    try:
        return re2.compile(_bytes(pattern), options)
    except re2.error as error:
        raise InvalidPattern(error.args[0].decode(errors="replace")) from None


def _bytes(text: str) -> bytes:
    # A text of a program may have half of a surrogate pair, which is no text of RE2.
    return text.encode(errors="replace")
