"""Property paths (`spec.ports[0].port`, `metadata["a.b/c"]`, with `*` for any): parse, write, find, apply."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Final

from local.engine.values import Secret, Value

Step = str | int
Path = tuple[Step, ...]

_TOKEN: Final = re.compile(r'\.?([^.\[\]"]+)|\[(\d+)\]|\[(\*)\]|\.?\["((?:[^"\\]|\\.)*)"\]')
_PLAIN: Final = re.compile(r'^[^.\[\]"]+$')
_MISSING: Final = object()


class PathError(Exception):
    """A property path that cannot be read; the message holds it."""


def parse(text: str) -> Path:
    """The steps of a path: str for keys, int for list indices, "*" for any. Raises PathError."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            raise PathError(f"{text!r} is not a property path (at character {position + 1})")
        key, index, star, quoted = match.groups()
        if index is not None:
            steps.append(int(index))
        elif quoted is not None:
            steps.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            steps.append(star or key)
        position = match.end()
    return tuple(steps)


def named(text: str) -> Path:
    """The steps of a path that a provider tells; one that cannot be read is its own way of naming a property."""
    try:
        return parse(text)
    except PathError:
        return (text,)


def write(path: Sequence[Step]) -> str:
    """The path as text; keys that are not plain words are quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.match(step):
            text += f".{step}" if text else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


def covers(pattern: Path, path: Path) -> bool:
    """Whether a change at `path` lies at or under `pattern`, or replaces something that holds it."""
    return all(p == "*" or p == s for p, s in zip(pattern, path, strict=False))


def holds(pattern: Path, path: Path) -> bool:
    """Whether a change at `path` lies at or under `pattern`."""
    return len(pattern) <= len(path) and covers(pattern, path)


def keep_old(news: dict[str, Value], olds: dict[str, Value], ignored: Sequence[str]) -> dict[str, Value]:
    """The new values with the old ones at each ignored path; where the old has none, the new one goes."""
    result: dict[str, Value] = copy.deepcopy(news)
    for text in ignored:
        _keep(result, olds, parse(text))
    return result


def _keep(new: Value, old: Value, path: Path) -> None:
    step, rest = path[0], path[1:]
    old = old.value if isinstance(old, Secret) else old
    for key in _keys(new, old, step):
        old_value = _get(old, key)
        if not rest:
            _set(new, key, old_value)
        else:
            new_value = _get(new, key)
            inner = new_value.value if isinstance(new_value, Secret) else new_value
            if isinstance(inner, dict | list) and old_value is not _MISSING:
                _keep(inner, old_value, rest)


def _keys(new: Value, old: Value, step: Step) -> list[Step]:
    if step != "*":
        return [step]
    if isinstance(new, dict):
        return [*new, *(k for k in old if k not in new)] if isinstance(old, dict) else list(new)
    return list(range(len(new))) if isinstance(new, list) else []


def _get(value: Value, step: Step) -> Value:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if step < len(value) else _MISSING
    return _MISSING


def _set(target: Value, step: Step, value: Value) -> None:
    if isinstance(target, dict):
        if value is _MISSING:
            target.pop(step, None)
        else:
            target[step] = value
    elif isinstance(target, list) and isinstance(step, int) and step < len(target) and value is not _MISSING:
        target[step] = value
