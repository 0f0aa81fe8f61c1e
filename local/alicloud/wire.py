"""Parameters between the wire, where all is text and flat (`Tag.1.Key=a`), and the SDK's models. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_INTEGER = re.compile(r"-?\d{1,18}")


def unflatten(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`[("Tag.1.Key", "a")]` as `{"Tag": [{"Key": "a"}]}`."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        *path, last = name.split(".")
        here = root
        for part in path:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise ValueError(f"{name} has a value and members")
        here[last] = value
    return {name: _with_lists(value) for name, value in root.items()}


def typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value with the types of the schema; text that is no such value stays text."""
    kind = schema.get("type")
    if isinstance(value, dict):
        members = schema.get("properties", {})
        return {name: typed(each, _member(members, name)) for name, each in value.items()}
    if isinstance(value, list):
        return [typed(each, schema.get("items", {})) for each in value]
    if not isinstance(value, str):  # it came as JSON
        return value
    if kind == "integer" and _INTEGER.fullmatch(value):
        return int(value)
    if kind == "number" and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return float(value)
    if kind == "boolean" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value


def from_json(text: Any) -> Any:
    """A parameter that came as JSON; text that is none stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _member(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = members.get(name, {})
    return found


def _with_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if all(name.isdecimal() for name in value):
        return [_with_lists(value[name]) for name in sorted(value, key=int)]
    return {name: _with_lists(each) for name, each in value.items()}
