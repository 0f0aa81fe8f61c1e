"""Names of resources: urn:pulumi:STACK::PROJECT::QUALIFIED$TYPE::NAME."""

from __future__ import annotations

from typing import Final, NamedTuple

STACK_TYPE: Final = "pulumi:pulumi:Stack"
PROVIDER_PREFIX: Final = "pulumi:providers:"
_SCHEME: Final = "urn:pulumi:"


class Urn(NamedTuple):
    """The parts of a URN; `type` is the chain of types, from the outermost parent's to the resource's own."""

    stack: str
    project: str
    type: str
    name: str


def parse(urn: str) -> Urn:
    """Split a URN. Raises ValueError for any other text."""
    scheme, project, kind, name = _fields(urn)
    return Urn(scheme.removeprefix(_SCHEME), project, kind, name)


def make(stack: str, project: str, parent: str, type: str, name: str) -> str:
    """The URN of a resource; the types of its parents precede its own, the root stack's omitted."""
    parent_type = qualified_type(parent) if parent else ""
    qualified = type if parent_type in ("", STACK_TYPE) else f"{parent_type}${type}"
    return f"{_SCHEME}{stack}::{project}::{qualified}::{name}"


def qualified_type(urn: str) -> str:
    """The chain of types, from the outermost parent's to the resource's own."""
    return _fields(urn)[2]


def stack_of(urn: str) -> str:
    """The resource's stack, present or former."""
    return _fields(urn)[0].removeprefix(_SCHEME)


def project_of(urn: str) -> str:
    """The resource's project, present or former."""
    return _fields(urn)[1]


def type_of(urn: str) -> str:
    """The resource's own type."""
    return qualified_type(urn).rsplit("$", 1)[-1]


def name_of(urn: str) -> str:
    """The resource's name in the program. It may itself hold `::`."""
    return _fields(urn)[3]


def check(urn: str) -> None:
    """Raise ValueError unless the text is a URN."""
    _fields(urn)


def is_provider(type: str) -> bool:
    """Whether resources of this type are provider instances."""
    return type.startswith(PROVIDER_PREFIX)


def package_of(type: str) -> str:
    """The package that manages a type; for a provider resource the one that it configures."""
    return type.removeprefix(PROVIDER_PREFIX).split(":", 1)[0]


def _fields(urn: str) -> list[str]:
    fields = urn.split("::", 3)
    if not urn.startswith(_SCHEME) or len(fields) != 4:
        raise ValueError(f"{urn!r} is not a valid URN")
    return fields
