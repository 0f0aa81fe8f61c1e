"""Logging: one line per event on stderr, as text or JSON, with secrets redacted.

A message is a few words followed by `key=%s` pairs; in JSON, each pair is a field.
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
_UNIT = re.compile(r"\w+")
_CREDENTIAL = re.compile(r"(?i)\b(bearer\s+|token\s*[=:]\s*)(?!\[)[\w.~+/=-]{8,}")
_HIDDEN = "[redacted]"
_SHORTEST = 8

_secrets: deque[str] = deque(maxlen=256)
"""The most recent secrets passed to `hide`; tokens rotate."""


def configure(level: str, style: Literal["text", "json"] = "text") -> None:
    """Log to stderr at `level` (debug, info, warning, error) and above; times are UTC."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = _Json() if style == "json" else _Text(_TEXT, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # urllib3 logs every request at debug, and lost connections as warnings that our own errors explain better.
    logging.getLogger("urllib3").setLevel(logging.ERROR)


def hide(secret: str) -> None:
    """Redact this secret in all log messages.

    SECRETS SHORTER THAN 8 CHARACTERS ARE NOT REDACTED: they would match ordinary words.
    """
    if len(secret) >= _SHORTEST and secret not in _secrets:
        _secrets.append(secret)


def redacted(text: str) -> str:
    """The text with known secrets, and what looks like credentials, redacted."""
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
    """Split a record's message into its words and its `key=%s` pairs."""
    template = str(record.msg)
    args = record.args if isinstance(record.args, tuple) else None
    if not args:
        return record.getMessage(), []
    words, fields, rest = "", list[tuple[str, object]](), iter(args)
    pair = False
    for before, place in _places(template):
        if pair and (unit := _UNIT.match(before)):
            key, number = fields.pop()
            fields.append((key, f"{number}{unit[0]}"))
            before = before[unit.end() :]
        words += before
        if place is None:
            continue
        value = next(rest)
        named = _FIELD.search(words)
        pair = named is not None
        if named:
            words = words[: named.start()]
            # %r is only for the text format, to quote spaces.
            plain = isinstance(value, bool | int | str)
            fields.append((named["key"], value if plain else place.replace("r", "s") % value))
        else:
            words += place % value
    return words.strip(), fields


def _places(template: str) -> Iterator[tuple[str, str | None]]:
    """Split the template at its placeholders: the text before each, and the placeholder."""
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
