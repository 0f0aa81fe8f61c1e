"""Checks the form of an exported state: each field must have the right type. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Json = Any

VERSIONS: Final = (3, 4)
"""Supported deployment versions. 4 is 3 with a list of the `features` that it uses."""


def deployment_of(document: Json) -> dict[str, Json]:
    """The inner part of an export, well-formed. Raises ValueError, which names the invalid field."""
    if not isinstance(document, dict) or "deployment" not in document:
        raise ValueError("this is not an export of a stack: `deployment` is missing")
    version = document.get("version")
    if version not in VERSIONS:
        raise ValueError(f"deployment version {version!r} is not one of {', '.join(map(str, VERSIONS))}")
    deployment = document["deployment"] or {}
    if not isinstance(deployment, dict):
        raise ValueError("this is not an export of a stack: `deployment` is not a map")
    for key in ("manifest", "secrets_providers"):
        _check(deployment, key, _map, "deployment")
    _check(deployment.get("secrets_providers") or {}, "state", _map, "deployment.secrets_providers")
    for key in ("resources", "pending_operations"):
        _check(deployment, key, _maps, "deployment")
    for index, resource in enumerate(deployment.get("resources") or ()):
        check_resource(resource, f"deployment.resources[{index}]")
    for index, pending in enumerate(deployment.get("pending_operations") or ()):
        place = f"deployment.pending_operations[{index}]"
        if not _map(pending.get("resource")) or not _text(pending.get("type")):
            raise ValueError(f"{place} has no `resource` or no `type`")
        check_resource(pending["resource"], f"{place}.resource")
    return dict(deployment)


def check_resource(resource: dict[str, Json], place: str) -> None:
    """Raise ValueError if a field of the resource has the wrong type; `place` is its position in the export."""
    for key, fits in _FIELDS.items():
        _check(resource, key, fits, place)


def _check(data: Mapping[str, Json], key: str, fits: Callable[[Json], bool], place: str) -> None:
    if data.get(key) is not None and not fits(data[key]):
        raise ValueError(f"{place}: `{key}` cannot be {_kind(data[key])}")


def _kind(value: Json) -> str:
    # Never the value: it may be a misplaced secret.
    if isinstance(value, list):
        return "this list"
    return {dict: "this map", str: "a string", bool: "a boolean"}.get(type(value), "a number")


def _text(value: Json) -> bool:
    return isinstance(value, str)


def _flag(value: Json) -> bool:
    return isinstance(value, bool)


def _map(value: Json) -> bool:
    return isinstance(value, dict)


def _list(value: Json) -> bool:
    return isinstance(value, list)


def _maps(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _text_lists(value: Json) -> bool:
    return isinstance(value, dict) and all(each is None or _texts(each) for each in value.values())


def _numbers(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int | float) for each in value.values())


def _frames(value: Json) -> bool:
    return _maps(value) and all(isinstance(each.get("sourcePosition", ""), str) for each in value)


_FIELDS: Final[Mapping[str, Callable[[Json], bool]]] = {
    **dict.fromkeys(
        ("urn", "type", "id", "parent", "importID", "provider", "deletedWith", "created", "modified", "sourcePosition"),
        _text,
    ),
    **dict.fromkeys(
        ("custom", "delete", "external", "protect", "retainOnDelete", "pendingReplacement", "taint"),
        _flag,
    ),
    **dict.fromkeys(
        ("dependencies", "initErrors", "additionalSecretOutputs", "ignoreChanges", "replaceOnChanges", "replaceWith"),
        _texts,
    ),
    **dict.fromkeys(("inputs", "outputs"), _map),
    **dict.fromkeys(("propertyDependencies", "resourceHooks"), _text_lists),
    "hideDiff": _list,
    "customTimeouts": _numbers,
    "stackTrace": _frames,
}
