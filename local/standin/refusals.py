"""What a stand-in raises instead of an answer.

Exception
├── Refusal        the cloud refuses the call; nothing has changed
└── OwnMistake     the stand-in's answer does not fit its schema: a 500, so that no test passes on it
"""

from __future__ import annotations


class Refusal(Exception):
    """The cloud refuses a call; `code` is the cloud's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message


class OwnMistake(Exception):
    """The stand-in did something that the cloud could not have done."""
