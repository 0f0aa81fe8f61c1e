"""Names resources within a cloud's length and characters, so that a repeated creation finds the first one's resource.

Tags, never names, state the owner: a name shows people whose a resource is, and its hash tells resources apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

_DIGEST = 10
"""The characters of the hash at the end of a name."""


def hashed_name(prefix: str, words: Sequence[str], distinct: str, *, longest: int) -> str:
    """`prefix`, the beginnings of `words`, and a hash of `distinct`, with at most `longest` characters.

    Of the words, only ASCII letters and digits remain, which all clouds allow. The same input always gives the same
    name. CHANGING THIS WOULD ORPHAN ALL RESOURCES that are found by name.
    """
    room = (longest - len(prefix) - _DIGEST) // max(1, len(words)) - 1
    shown = (re.sub("[^0-9A-Za-z]", "", word)[:room] for word in words)
    return prefix + "-".join([*filter(None, shown), hashlib.sha256(distinct.encode()).hexdigest()[:_DIGEST]])
