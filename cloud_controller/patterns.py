"""Patterns against text of others, in time linear in the text: RE2, as the API server and Go match them. Pure.

Python's `re` backtracks, and HOLDS THE INTERPRETER meanwhile: one annotation could stop every thread, and with them the
renewal of the Lease. So no text of a Service's author becomes a pattern of `re` or `fnmatch`. The catalogues' patterns,
which are within RE2's syntax for the admission policies, are matched here too, so both say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import re2

LONGEST = 255
"""Characters of a pattern that an author gives; the names that it is for are not longer."""
_MEMORY = 1 << 16
"""Bytes for such a pattern: some 2,700 instructions, each taken at most once for each character of a text."""
_KEPT = 1024


class InvalidPattern(ValueError):
    """Not within RE2's syntax, too long or too large; the message says which."""


def is_whole(pattern: str, text: str) -> bool:
    """Whether the whole text matches this pattern of ours, or of the administrator. Raises InvalidPattern."""
    return _whole(pattern)(text.encode()) is not None


def of_author(pattern: str, *, is_glob: bool) -> Callable[[str], bool]:
    """Whether a text matches what a Service's author gives: as a whole a glob, in part an expression of RE2.

    Raises InvalidPattern.
    """
    if len(pattern) > LONGEST:
        raise InvalidPattern(f"it has {len(pattern):,} characters, of at most {LONGEST}")
    compiled = _compiled(glob(pattern) if is_glob else pattern, _MEMORY)
    found = compiled.fullmatch if is_glob else compiled.search
    return lambda text: found(text.encode()) is not None


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
    return _compiled(pattern).fullmatch


def _compiled(pattern: str, memory: int | None = None) -> re2._Regexp[bytes]:
    options = re2.Options()
    options.log_errors = False
    if memory:
        options.max_mem = memory
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        raise InvalidPattern(error.args[0].decode(errors="replace")) from None
