"""Tags in requests and answers. A value that is too long for one tag takes several.

Such a value is the former settings of a taken-over listener, which are JSON: its pieces are base64, because not every
product allows JSON's characters in tags, of the compressed value, because an object has at most 20 tags.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_LONGEST = 120
"""Characters of a value; the limit is 128."""
_PIECE = re.compile(r"(.+)\.part-(\d+)")


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """The tags for a request."""
    return [{"Key": key, "Value": value} for key, value in sorted(stored(tags).items())]


def tags_of(shown: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The tags of an answer, with long values in one piece again. Actions differ in the names of key and value."""
    found: dict[str, str] = {}
    pieces: dict[str, dict[int, str]] = {}
    for each in shown:
        key = str(each.get("TagKey") or each.get("Key"))
        value = str(each.get("TagValue") or each.get("Value") or "")
        if piece := _PIECE.fullmatch(key):
            pieces.setdefault(piece[1], {})[int(piece[2])] = value
        else:
            found[key] = value
    return found | {key: _joined(parts) for key, parts in pieces.items()}


def stored(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags as the cloud has them."""
    return dict(pair for key, value in tags.items() for pair in _pieces(key, value))


def _pieces(key: str, value: str) -> Iterator[tuple[str, str]]:
    if len(value) <= _LONGEST:
        yield key, value
        return
    text = base64.urlsafe_b64encode(zlib.compress(value.encode(), 9)).decode()
    for number, start in enumerate(range(0, len(text), _LONGEST)):
        yield f"{key}.part-{number}", text[start : start + _LONGEST]


def _joined(parts: Mapping[int, str]) -> str:
    """The value; whatever else stands in such tags is passed on, for somebody may have edited them."""
    text = "".join(parts[each] for each in sorted(parts))
    try:
        return zlib.decompress(base64.urlsafe_b64decode(text.encode())).decode()
    except (ValueError, zlib.error):
        return text
