"""Translates a cloud's error codes into the errors of `cloud_errors`; the cloud keeps only its table of codes."""

from __future__ import annotations

import re

from cloud_controller.cloud_errors import AccessDenied, CloudError, InvalidConfiguration, Throttled, Unavailable
from cloud_controller.retries import RETRY_AFTER


class ErrorCodes:
    """A cloud's error codes: rows of an error and the regular expressions of its codes; the first match decides.

    `|` separates expressions and is in none: the contract suite knows a code for each. Raises ValueError for one that
    is there twice, and re.error for one that is none.
    """

    def __init__(self, *rows: tuple[type[CloudError], *tuple[str, ...]]) -> None:
        self.kinds: dict[str, type[CloudError]] = {}
        """The error of each expression."""
        for kind, *codes in rows:
            for each in "|".join(codes).split("|"):
                re.compile(each)
                if each in self.kinds:
                    raise ValueError(f"{each!r} is in the table twice")
                self.kinds[each] = kind

    def expression(self, code: str) -> str:
        """The expression that decides about a code; "" if the code is unknown."""
        return next((each for each in self.kinds if re.fullmatch(each, code)), "")

    def kind(self, code: str, status: int = 0) -> type[CloudError]:
        """The error that a code stands for; `CloudError` if the code is unknown.

        An HTTP status of 429, or of a failing server (500 and more), means more than the code.
        """
        found = self.kinds.get(self.expression(code), CloudError)
        if status == 429:
            return Throttled
        if status >= 500 and found not in (Throttled, AccessDenied):
            return Unavailable
        return found


def typed(
    kind: type[CloudError], text: str, invalid: InvalidConfiguration, retry_after: float = RETRY_AFTER
) -> CloudError:
    """The error of this kind with this text; `invalid`, which names a field, if the kind is InvalidConfiguration."""
    if kind is InvalidConfiguration:
        return invalid
    return Throttled(text, retry_after) if kind is Throttled else kind(text)
