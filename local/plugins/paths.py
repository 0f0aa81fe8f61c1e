"""Property paths (`spec.ports[0].port`, `metadata["a.b/c"]`, with `*` for any): parse, write, find, apply."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Final

from local.plugins.values import UNKNOWN, Secret, Value, transform, without_secrets

Step = str | int
Path = tuple[Step, ...]

_TOKEN: Final = re.compile(r'\.?([^.\[\]"]+)|\[(\d+)\]|\[(\*)\]|\.?\["((?:[^"\\]|\\.)*)"\]')
_PLAIN: Final = re.compile(r'^[^.\[\]"]+$')
_MISSING: Final = object()


class PathError(Exception):
    """An invalid property path, which the message contains."""


def parse(text: str) -> Path:
    """The steps of a path: str for keys, int for list indices, "*" for any. Raises PathError."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            raise PathError(f"{text!r} is not a valid property path (at character {position + 1})")
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
    """The steps of a path from a provider; an invalid path is taken as a property's name."""
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
    """Whether a change at `path` is at or under `pattern`, or replaces something that contains it."""
    return all(p == "*" or p == s for p, s in zip(pattern, path, strict=False))


def holds(pattern: Path, path: Path) -> bool:
    """Whether a change at `path` is at or under `pattern`."""
    return len(pattern) <= len(path) and covers(pattern, path)


def keep_old(news: dict[str, Value], olds: dict[str, Value], ignored: Sequence[str]) -> dict[str, Value]:
    """Keep the old values at the ignored paths; where the old map has none, the new value is removed.

    Raises PathError with every path whose value cannot be set or removed: only one of the two maps has its parent, or
    it would change the length of a list.
    """
    if not ignored:
        return news
    result: dict[str, Value] = copy.deepcopy(news)
    stuck = [text for text in ignored if not _keep(result, olds, parse(text))]
    if stuck:
        raise PathError(
            f"cannot ignore changes of {', '.join(stuck)}: only the old or only the new inputs have the parent or "
            "the list element"
        )
    # What is kept within a secret is part of it.
    result = transform(result, lambda v: Secret(without_secrets(v.value)) if isinstance(v, Secret) else v)
    return result


def _keep(new: Value, old: Value, path: Path) -> bool:
    step, rest = path[0], path[1:]
    if step == "*":
        return all(_keep(new, old, (key, *rest)) for key in _keys(new, old))
    new_value, old_value = _get(new, step), _get(old, step)
    if not rest:
        return _set(new, step, old_value)
    if new_value is UNKNOWN:
        return True
    if new_value is _MISSING or old_value is _MISSING:
        return new_value is old_value
    return _keep(new_value.value if isinstance(new_value, Secret) else new_value, _parts(old_value), rest)


def _parts(value: Value) -> Value:
    """The value; of a secret, a map or list whose parts are secret."""
    match value:
        case Secret(dict() as inner):
            return {key: Secret(part) for key, part in inner.items()}
        case Secret(list() as inner):
            return [Secret(part) for part in inner]
    return value


def _keys(new: Value, old: Value) -> list[Step]:
    if isinstance(new, dict) and isinstance(old, dict):
        return [*new, *(k for k in old if k not in new)]
    if isinstance(new, list) and isinstance(old, list):
        return list(range(max(len(new), len(old))))
    return [0] if isinstance(new, list | dict) or isinstance(old, list | dict) else []


def _get(value: Value, step: Step) -> Value:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if step < len(value) else _MISSING
    return _MISSING


def _set(target: Value, step: Step, value: Value) -> bool:
    """Set a value, or remove it if there is none; False if its parent does not exist."""
    if isinstance(target, dict):
        if value is _MISSING:
            target.pop(step, None)
        else:
            target[step] = value
        return True
    if _get(target, step) is _MISSING:
        return value is _MISSING
    if value is not _MISSING:
        target[step] = value
    return value is not _MISSING
