"""Compiles a JSON schema into a function, for values are checked at every call. Pure.

It knows what the schemas of SDK models need: `type` (one of six), `properties`, `required`, `additionalProperties`,
`items`. A schema with any other keyword is refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Misfit:
    """Where a value does not fit, and why."""

    path: str
    """Such as `Tag[0].Key`; empty for the value itself."""
    rule: str
    """The keyword that it breaks."""
    message: str

    def under(self, part: str) -> Misfit:
        """The same, seen from the value around it."""
        dot = "" if not self.path or self.path.startswith("[") else "."
        return Misfit(f"{part}{dot}{self.path}", self.rule, self.message)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


Check = Callable[[Any], Misfit | None]
"""None if the value fits."""

_KEYWORDS: Final = frozenset({"type", "properties", "required", "additionalProperties", "items"})
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def compile_schema(schema: Mapping[str, Any]) -> Check:
    """The check of a schema; an empty one accepts everything."""
    if unknown := schema.keys() - _KEYWORDS:
        raise NotImplementedError(f"JSON schema keyword {sorted(unknown)[0]}")
    if not schema:
        return lambda _: None
    wanted = str(schema["type"])
    types = _TYPES[wanted]
    inner = {"object": _members, "array": _items}.get(wanted, lambda _: None)(schema)

    def check(value: Any) -> Misfit | None:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            return Misfit("", "type", f"{value!r} is not of type {wanted}")
        return None if inner is None else inner(value)

    return check


def _members(schema: Mapping[str, Any]) -> Check:
    named = {name: compile_schema(each) for name, each in schema.get("properties", {}).items()}
    required: list[str] = schema.get("required", [])
    others = schema.get("additionalProperties", True)
    rest = None if isinstance(others, bool) else compile_schema(others)

    def check(value: dict[str, Any]) -> Misfit | None:
        for name in required:
            if name not in value:
                return Misfit(name, "required", "is required")
        for name, each in value.items():
            found = named.get(name, rest)
            if found is None:
                if others is False:
                    return Misfit(name, "additionalProperties", "is unknown")
            elif (misfit := found(each)) is not None:
                return misfit.under(name)
        return None

    return check


def _items(schema: Mapping[str, Any]) -> Check:
    item = compile_schema(schema.get("items", {}))

    def check(value: list[Any]) -> Misfit | None:
        for number, each in enumerate(value):
            if (misfit := item(each)) is not None:
                return misfit.under(f"[{number}]")
        return None

    return check
