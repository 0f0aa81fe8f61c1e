"""The settings in a text, as names and values: of JSON, YAML, INI, env files, properties, TOML. Pure.

What the text is for does not matter, nor where in it a setting is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_TEXTS = 3
"""How many texts inside of texts are read: a manifest's copy in an annotation contains a ConfigMap's file."""
_NESTING = 100
"""How deep a YAML text may be: hostile ones take minutes."""
_LINE = re.compile(
    r"""\s*(?:export\s+|set\s+|-\s+)?["']?(?P<name>[A-Za-z_][\w./-]*)["']?(?:\s*[=:]=?\s*(?P<value>.*)|\s+(?P<word>\S+))"""
)
_COMMENTS = ("#", ";", "//")


def settings(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Each setting's name and value, as texts; the text's own, where it is one line."""
    waiting = [(name, text.strip(), 0)]
    while waiting:
        name, text, depth = waiting.pop()
        if "\n" not in text:
            yield name, text
        if depth < _TEXTS and re.search(r"[=:\n]", text):
            found = _of_json(text)
            if found is None:
                found = _of_yaml(text)
            waiting += [(key, value.strip(), depth + 1) for key, value in (found or ())]
            if found is None:
                yield from _of_lines(text)


def _of_json(text: str) -> list[tuple[str, str]] | None:
    """None: it is no JSON, or neither object nor list."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", whole)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            found += _variable(value)
            waiting += value.items()
        elif isinstance(value, list):
            waiting += ((name, each) for each in value)
        elif value is not None:
            found.append((name, str(value)))
    return found if isinstance(whole, dict | list) else None


@dataclass(slots=True)
class _Open:
    """A mapping or a list around an event."""

    name: str
    """What a list's elements, or a mapping's before its first key, are called."""
    settings: dict[str, str] | None
    """A mapping's own; None: a list."""
    key: str | None = None
    """The key whose value comes next."""


def _of_yaml(text: str) -> list[tuple[str, str]] | None:
    """As `_of_json`, of every document. By events: an anchor's thousand copies are not made."""
    found: list[tuple[str, str]] = []
    around: list[_Open] = []
    try:
        for event in yaml.parse(text, yaml.CSafeLoader):
            inner = around[-1] if around else None
            if isinstance(event, yaml.CollectionEndEvent):
                found += _variable(around.pop().settings or {})
            elif isinstance(event, yaml.CollectionStartEvent):
                if len(around) == _NESTING:
                    return None
                name = (inner.key or inner.name) if inner else ""
                around.append(_Open(name, {} if isinstance(event, yaml.MappingStartEvent) else None))
                _end_of_value(inner)
            elif isinstance(event, yaml.ScalarEvent):
                if inner is None:
                    return None
                if inner.settings is not None and inner.key is None:
                    inner.key = event.value
                    continue
                name = inner.key or inner.name
                found.append((name, event.value))
                if inner.settings is not None:
                    inner.settings[name] = event.value
                _end_of_value(inner)
            elif isinstance(event, yaml.AliasEvent):
                _end_of_value(inner)
    except yaml.YAMLError:
        return None
    return found


def _end_of_value(inner: _Open | None) -> None:
    if inner is not None:
        inner.key = None


def _variable(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """`{name: X, value: Y}`, as containers have their variables."""
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        yield value["name"], value["value"]


def _of_lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        found = None if line.lstrip().startswith(_COMMENTS) else _LINE.fullmatch(line)
        if found is not None:
            yield found["name"], _bare(found["word"] if found["value"] is None else found["value"])


def _bare(value: str) -> str:
    """The value without quotes, and without what follows it on its line."""
    value = value.strip()
    if value[:1] in ("'", '"') and (end := value.find(value[0], 1)) > 0:
        return value[1:end]
    return re.split(r"\s[#;]", value, maxsplit=1)[0].rstrip(",; ")
