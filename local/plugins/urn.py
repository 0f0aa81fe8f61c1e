"""Names of resources: urn:pulumi:STACK::PROJECT::QUALIFIED$TYPE::NAME."""

from __future__ import annotations

from typing import Final

PROVIDER_PREFIX: Final = "pulumi:providers:"
_SCHEME: Final = "urn:pulumi:"


def type_of(urn: str) -> str:
    """The resource's own type. Raises ValueError for a text that is no URN, as `name_of` does."""
    return _fields(urn)[2].rsplit("$", 1)[-1]


def name_of(urn: str) -> str:
    """The resource's name in the program. It may itself hold `::`."""
    return _fields(urn)[3]


def _fields(urn: str) -> list[str]:
    fields = urn.split("::", 3)
    if not urn.startswith(_SCHEME) or len(fields) != 4:
        raise ValueError(f"{urn!r} is not a valid URN")
    return fields
