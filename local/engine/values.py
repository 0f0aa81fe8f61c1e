"""Property values inside the engine: JSON plus what Pulumi adds to it (unknowns, secrets, references, assets).

A property map is a `dict[str, Value]` of: None, bool, int, float, str, list, dict with str keys, `UNKNOWN`, `Secret`,
`ResourceReference`, `Asset`, `Archive`. Output values of the wire are flattened on the way in: an unknown one to
UNKNOWN, a secret one to `Secret`. Conversions to and from the wire (protobuf Struct) live in `wire.py`, to and from the
state file in `state.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Value = Any
PropertyMap = dict[str, Value]


class Unknown:
    """The type of `UNKNOWN`: a value that only an update will tell."""

    _instance: Unknown | None = None

    def __new__(cls) -> Unknown:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "[unknown]"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is shown to nobody and encrypted in the state. `value` is never itself a Secret."""

    value: Value

    def __repr__(self) -> str:
        return "[secret]"


@dataclass(frozen=True, slots=True)
class ResourceReference:
    """A resource as a value. `id` is None for a component, UNKNOWN or "" where the id is not known yet."""

    urn: str
    id: Value = None
    package_version: str = ""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as a value, as the wire has it (keys text, path, uri, hash)."""

    properties: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """A folder as a value, as the wire has it (keys assets, path, uri, hash)."""

    properties: tuple[tuple[str, Value], ...]


def transform(value: Value, leaf: Callable[[Value], Value]) -> Value:
    """Rebuild `value`; `leaf` is applied to whatever is not a list or dict (and to Secret: it decides on its own)."""
    if isinstance(value, dict):
        return {k: transform(v, leaf) for k, v in value.items()}
    if isinstance(value, list):
        return [transform(v, leaf) for v in value]
    return leaf(value)


def without_secrets(value: Value) -> Value:
    """The value with every Secret replaced by what it hides: for providers that take plain values, never for show."""
    return transform(value, lambda v: without_secrets(v.value) if isinstance(v, Secret) else v)


def has_unknowns(value: Value) -> bool:
    """Whether an UNKNOWN stands anywhere in the value."""
    if isinstance(value, dict):
        return any(has_unknowns(v) for v in value.values())
    if isinstance(value, list):
        return any(has_unknowns(v) for v in value)
    if isinstance(value, Secret):
        return has_unknowns(value.value)
    if isinstance(value, ResourceReference):
        return value.id is UNKNOWN
    return value is UNKNOWN


def has_secrets(value: Value) -> bool:
    """Whether a Secret stands anywhere in the value."""
    if isinstance(value, dict):
        return any(has_secrets(v) for v in value.values())
    if isinstance(value, list):
        return any(has_secrets(v) for v in value)
    return isinstance(value, Secret)
