"""Adds to an error the line of the stack file that it is about: the program itself gets only the values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloud_controller import yaml_text

from .config_values import NAMESPACE

_ABOUT = re.compile(rf"{NAMESPACE}:(([^ .\[]+)[^ ]*) is ")


def with_lines(message: str, values: Mapping[str, str], file: Path) -> str:
    """The message, of lines as `cloud-controller:nodePools[0].count is ...`, each with its place in the file.

    `values` are the config's by key. A key with another value is not from this file: another file may be in use.
    """
    try:
        text = file.read_text()
        document = yaml_text.load(text)
    except (OSError, ValueError):
        return message
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        return message
    places = yaml_text.lines(text)
    found = []
    for line in message.splitlines():
        about = _ABOUT.match(line)
        place = _place(about[1], about[2], config, places) if about and _same(about[2], config, values) else None
        found.append(line if place is None else f"{line} ({file}:{place})")
    return "\n".join(found)


def _written(key: str, config: Mapping[str, Any]) -> str:
    return f"{NAMESPACE}:{key}" if f"{NAMESPACE}:{key}" in config else key


def _same(key: str, config: Mapping[str, Any], values: Mapping[str, str]) -> bool:
    value, written = values.get(key), config.get(_written(key, config))
    if value is None or value == written:
        return value is not None
    try:
        # Whatever the order of keys that the CLI or the engine hands over.
        return bool(json.loads(value) == json.loads(json.dumps(written, default=str)))
    except ValueError:
        return False


def _place(path: str, key: str, config: Mapping[str, Any], places: Mapping[str, int]) -> int | None:
    """The line of a path of the config, or, where that is missing, of what it is missing from.

    None for a key without a line of its own: a merge (`<<`) brought it.
    """
    written, rest = f"config.{_written(key, config)}", path.removeprefix(key)
    while rest and f"{written}{rest}" not in places:
        # A label may have brackets of its own: then one character at a time.
        rest = re.sub(r"(\.[^.\[\]]*|\[[^\[\]]*\]|.)$", "", rest)
    return places.get(f"{written}{rest}")
