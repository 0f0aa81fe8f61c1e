"""Results that are mostly alike, each written as what it changes of another: so it shows what its Service brings about.

Of a value that both have, `condensed` writes what changes of it, of a list of as many objects by their places;
`without` names the fields that are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.compatibility.differences import Json

_LIKE, _WITHOUT = "like", "without"


def condensed(results: Mapping[str, Json], models: Mapping[str, str]) -> dict[str, Json]:
    """The results; one whose name begins with a kind of `models` is written as what it changes of that kind's model."""
    made = {}
    for name, result in results.items():
        model = next((of for kind, of in models.items() if name.startswith(kind) and name != of), None)
        made[name] = {_LIKE: model, **_changes(results[model], result)} if model else result
    assert expanded(made) == results
    return made


def expanded(written: Mapping[str, Json]) -> dict[str, Json]:
    """The results that were written so."""
    return {
        name: _changed(written[changes.pop(_LIKE)], changes) if _LIKE in changes else changes
        for name, changes in ((name, {**result}) for name, result in written.items())
    }


def _changes(model: Json, result: Json) -> Json:
    changes = {
        key: _changes(_fields(model[key]), _fields(value)) if _are_alike(model.get(key), value) else value
        for key, value in result.items()
        if key not in model or model[key] != value
    }
    gone = sorted(model.keys() - result.keys())
    return changes | ({_WITHOUT: gone} if gone else {})


def _changed(model: Json, changes: Json) -> Json:
    result = {key: value for key, value in model.items() if key not in changes.get(_WITHOUT, ())}
    for key, value in changes.items():
        if isinstance(value, dict) and _are_alike(model.get(key), model.get(key)):
            fields = _changed(_fields(model[key]), value)
            result[key] = [*fields.values()] if isinstance(model[key], list) else fields
        elif key != _WITHOUT:
            result[key] = value
    return result


def _are_alike(model: Any, value: Any) -> bool:
    if isinstance(model, dict):
        return isinstance(value, dict)
    if not isinstance(model, list) or not isinstance(value, list) or len(model) != len(value):
        return False
    return model != [] and all(isinstance(each, dict) for each in (*model, *value))


def _fields(value: Any) -> Json:
    return value if isinstance(value, dict) else {str(place): each for place, each in enumerate(value)}
