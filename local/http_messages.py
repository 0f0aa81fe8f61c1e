"""A whole HTTP request, and its answer, for code that does no I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A request as received: `path` and `query` still encoded, the names of `headers` in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = b""
    client: str = ""
    """The address that it came from."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_lost: bool = False
    """The work is done, and the connection ends instead."""


def json_answer(status: int, content: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer whose body is JSON."""
    return Answer(status, json.dumps(content).encode(), {"content-type": "application/json", **(headers or {})})
