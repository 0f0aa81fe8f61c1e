"""The two ways in which lists come in pages: by number and size, or by a token and a maximum. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from local.standin.refusals import Refusal

T = TypeVar("T")


def numbered(
    arguments: Mapping[str, Any], found: Sequence[T], size: int, largest: int
) -> tuple[list[T], dict[str, int]]:
    """The page that PageNumber and PageSize ask for, and the fields that tell of it."""
    number, asked = arguments.get("PageNumber", 1), arguments.get("PageSize", size)
    _require(1 <= asked <= largest, "PageSize", f"{asked} is not between 1 and {largest}")
    _require(number >= 1, "PageNumber", f"{number} is below 1")
    begin = (number - 1) * asked
    return list(found[begin : begin + asked]), {"PageNumber": number, "PageSize": asked, "TotalCount": len(found)}


def tokened(
    arguments: Mapping[str, Any], found: Sequence[T], size: int, largest: int, maximum: str = "MaxResults"
) -> tuple[list[T], dict[str, Any]]:
    """The page after NextToken, at most `maximum` long, and the fields that tell of it; no token on the last page."""
    asked = arguments.get(maximum, size)
    _require(1 <= asked <= largest, maximum, f"{asked} is not between 1 and {largest}")
    begin = _position(arguments.get("NextToken", ""))
    end = begin + asked
    token = {"NextToken": base64.urlsafe_b64encode(str(end).encode()).decode()} if end < len(found) else {}
    return list(found[begin:end]), {"TotalCount": len(found), **token}


def _position(token: str) -> int:
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token.encode()))
    except ValueError:
        raise Refusal(400, "InvalidNextToken", "Specified parameter NextToken is not valid.") from None


def _require(holds: bool, name: str, why: str) -> None:
    if not holds:
        raise Refusal(400, f"Invalid{name}", f"Specified parameter {name} is not valid: {why}.")
