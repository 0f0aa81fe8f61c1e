"""How the daemon logs: one line an event to stderr, as text or as JSON; never a secret.

A message is a few words followed by `key=%s` pairs; the JSON form has each pair as a field of its own.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import Literal

import orjson

_TEXT = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s"
_PLACE = re.compile(r"%(?P<literal>%)|%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
_FIELD = re.compile(r"(?:^|\s)(?P<key>\w+)=$")
_CREDENTIAL = re.compile(r"(?i)\b(bearer\s+|token\s*[=:]\s*)(?!\[)[\w.~+/=-]{8,}")
_HIDDEN = "[redacted]"
_SHORTEST = 8

_secrets: deque[str] = deque(maxlen=256)
"""What `hide` was told, the last ones: tokens are replaced from time to time."""


def configure(level: str, style: Literal["text", "json"] = "text") -> None:
    """Log to stderr from `level` (debug, info, warning, error) on; times are UTC."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json() if style == "json" else _Text(_TEXT, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # It logs every request's path at debug, and a lost connection as a warning that our own errors tell better.
    logging.getLogger("urllib3").setLevel(logging.ERROR)


def hide(secret: str) -> None:
    """Never show this secret, whoever should log it, in whatever message.

    What is as short as a word is not looked for: it would be found in every other line.
    """
    if len(secret) >= _SHORTEST and secret not in _secrets:
        _secrets.append(secret)


def redacted(text: str) -> str:
    """The text without any secret that is known or looks like one."""
    for secret in tuple(_secrets):
        text = text.replace(secret, _HIDDEN)
    return _CREDENTIAL.sub(rf"\g<1>{_HIDDEN}", text)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        words, fields = _split(record)
        line: dict[str, object] = {
            "ts": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": words,
        }
        line |= {key if key not in line else f"{key}_": value for key, value in fields}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        shown = {key: redacted(value) if isinstance(value, str) else value for key, value in line.items()}
        return orjson.dumps(shown).decode()


def _split(record: logging.LogRecord) -> tuple[str, list[tuple[str, object]]]:
    """The words of a record's message and its `key=%s` pairs."""
    template = str(record.msg)
    args = record.args if isinstance(record.args, tuple) else None
    if not args:
        return record.getMessage(), []
    words, fields, rest = "", list[tuple[str, object]](), iter(args)
    for before, place in _places(template):
        words += before
        if place is None:
            continue
        value = next(rest)
        if key := _FIELD.search(words):
            words = words[: key.start()]
            # %r guards spaces in the text form alone.
            plain = isinstance(value, bool | int | str)
            fields.append((key["key"], value if plain else place.replace("r", "s") % value))
        else:
            words += place % value
    return words.strip(), fields


def _places(template: str) -> Iterator[tuple[str, str | None]]:
    """The template cut at its placeholders: what stands before each, and the placeholder."""
    start, before = 0, ""
    for found in _PLACE.finditer(template):
        before += template[start : found.start()]
        start = found.end()
        if found["literal"]:
            before += "%"
            continue
        yield before, found[0]
        before = ""
    yield before + template[start:], None
