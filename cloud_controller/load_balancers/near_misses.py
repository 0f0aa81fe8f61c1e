"""Names that one slip makes of a cloud's annotations, as a pattern within RE2's syntax. Pure.

The parser refuses every name of the cloud's domain that is nearly one of its own, which CEL cannot compute. A name with
the cloud's prefix is refused anyway. The pattern has the others: a slip in the prefix before a right name, and a slip
in a name without the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

SHORTEST = 36
"""Characters: of a shorter name, what the pattern matches may be too far away for the parser (`catalogue.parse`)."""


def pattern(names: Iterable[str], prefixes: Collection[str]) -> str:
    """The pattern of whole names."""
    known = [name for name in names if len(name) >= SHORTEST]
    return "|".join(_alternatives(known, prefixes))


def _alternatives(known: Collection[str], prefixes: Collection[str]) -> Iterator[str]:
    for prefix in prefixes:
        rest = "|".join(re.escape(name.removeprefix(prefix)) for name in known if name.startswith(prefix))
        yield f"{_slipped(prefix)}(?:{rest})"
    for name in known:
        if not name.startswith(tuple(prefixes)):
            yield _slipped(name)


def _slipped(text: str) -> str:
    """The text with two neighbouring characters after its domain dropped, swapped or replaced, or one put in there."""
    domain, _, rest = text.partition("/")
    slips = (f"{re.escape(rest[:at])}.{{0,3}}{re.escape(rest[at + 2 :])}" for at in range(len(rest) - 1))
    return f"{re.escape(domain)}/(?:{'|'.join(slips)})"
