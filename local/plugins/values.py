"""Property values: JSON plus Pulumi's additions (unknowns, secrets, references, assets).

A property map is a `dict[str, Value]` of: None, bool, int, float, str, list, dict with str keys, `UNKNOWN`, `Secret`,
`ResourceReference`, `Asset`, `Archive`. Output values of the wire are flattened on the way in: an unknown one to
UNKNOWN, a secret one to `Secret`. `wire.py` converts to and from the wire (protobuf Struct), and to JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Value = Any
PropertyMap = dict[str, Value]

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""The key that marks a map as what its value says, in a state and on the wire (Pulumi's sdk/go/common/resource/sig)."""
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
"""A secret, by its signature."""
SIMULATED: Final = "__simulated"
"""The output that marks a simulated resource."""
PLACEHOLDER: Final = "[placeholder]"
"""The text of every secret in a run without the passphrase."""


class Unknown:
    """The type of `UNKNOWN`: a value that only an update determines."""

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
    """A value that is never shown, and encrypted in the state. `value` is never itself a Secret."""

    value: Value

    def __repr__(self) -> str:
        return "[secret]"


@dataclass(frozen=True, slots=True)
class ResourceReference:
    """A resource as a value. `id` is None for a component, UNKNOWN or "" while the id is not known."""

    urn: str
    id: Value = None
    package_version: str = ""


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as a value, in the wire's form (keys text, path, uri, hash)."""

    properties: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """A folder as a value, in the wire's form (keys assets, path, uri, hash)."""

    properties: tuple[tuple[str, Value], ...]


def transform(value: Value, leaf: Callable[[Value], Value]) -> Value:
    """Rebuild `value`; `leaf` is applied to everything except lists and dicts (to a Secret, not to its content)."""
    if isinstance(value, dict):
        return {k: transform(v, leaf) for k, v in value.items()}
    if isinstance(value, list):
        return [transform(v, leaf) for v in value]
    return leaf(value)


def without_secrets(value: Value) -> Value:
    """The value with every Secret replaced by its content: for providers that take plain values, never for display."""
    return transform(value, lambda v: without_secrets(v.value) if isinstance(v, Secret) else v)


def has_unknowns(value: Value) -> bool:
    """Whether the value contains an UNKNOWN."""
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
    """Whether the value contains a Secret."""
    if isinstance(value, dict):
        return any(has_secrets(v) for v in value.values())
    if isinstance(value, list):
        return any(has_secrets(v) for v in value)
    return isinstance(value, Secret)


def hidden_like(output: Value, given: Value) -> Value:
    """The output with the parts wrapped that are secret in the input."""
    if isinstance(given, Secret):
        return wrapped(output)
    if isinstance(output, dict) and isinstance(given, dict):
        return {k: hidden_like(v, given.get(k)) for k, v in output.items()}
    if not has_secrets(given):
        return output
    if isinstance(output, list) and isinstance(given, list) and without_secrets(output) == without_secrets(given):
        return [hidden_like(v, g) for v, g in zip(output, given, strict=True)]
    # Elements may have moved, so it is unknown which part was secret.
    return wrapped(output)


def wrapped(value: Value) -> Value:
    """The value as a secret; what is unknown stays so."""
    return value if isinstance(value, Secret) or value is UNKNOWN else Secret(without_secrets(value))
