"""What Pulumi.yaml declares about a stack's config: types, defaults, secrets. Rules and messages are the CLI's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TYPES: Final = ("string", "integer", "boolean", "array", "object")
_ATTRIBUTES: Final = ("type", "items", "description", "secret", "default", "value")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class DeclarationError(Exception):
    """A declaration is invalid. The CLI's message: could not VERB 'FILE': MESSAGE."""

    def __init__(self, verb: str, why: str) -> None:
        super().__init__(why)
        self.verb = verb


@dataclass(frozen=True, slots=True)
class ConfigType:
    """A type, with the item type of an array."""

    name: str
    items: ConfigType | None = None

    def __str__(self) -> str:
        return f"array<{self.items}>" if self.items else self.name

    def fits(self, value: Any) -> bool:
        """Whether the value is of this type; numbers and booleans may be text, as `config set` writes them."""
        match self.name:
            case "string":
                return isinstance(value, str)
            case "integer":
                if isinstance(value, str):
                    return _INTEGER.fullmatch(value) is not None
                return isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer()
            case "boolean":
                return isinstance(value, bool) or value in ("true", "false")
            case "object":
                return isinstance(value, dict)
        items = self.items
        return isinstance(value, list) and items is not None and all(items.fits(item) for item in value)


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A declared key, with the field names of Pulumi.yaml. One of the project's own without a default must be set."""

    name: str
    type: ConfigType | None = None
    default: Any = None
    secret: bool = False


def declarations(project: str, config: Mapping[str, Any]) -> dict[str, ConfigKey]:
    """The declared keys by full name (`project:key`). Raises DeclarationError."""
    return {_full(name, project): _declaration(project, name, entry) for name, entry in config.items()}


def _full(name: str, project: str) -> str:
    return name if ":" in name else f"{project}:{name}"


def _declaration(project: str, name: str, entry: Any) -> ConfigKey:
    if isinstance(entry, str | int | list):
        return ConfigKey(name, default=entry)
    where = f"#/config/{name}"
    if not isinstance(entry, dict):
        raise DeclarationError("validate", f"{where}: expected object, but got {_json_type(entry)}")
    for attribute in entry:
        if attribute not in _ATTRIBUTES:
            raise DeclarationError("validate", f"{where}: additionalProperties {attribute!r} not allowed")
    secret = entry.get("secret", False)
    if not isinstance(secret, bool):
        raise DeclarationError("validate", f"{where}/secret: expected boolean, but got {_json_type(secret)}")
    kind = _type(entry, where) if "type" in entry else None
    default, value = entry.get("default"), entry.get("value")
    if wrong := _contradiction(name, kind, default, value, own=_full(name, project).startswith(f"{project}:")):
        raise DeclarationError("unmarshal", wrong)
    return ConfigKey(name, kind, value if default is None else default, secret)


def _contradiction(name: str, kind: ConfigType | None, default: Any, value: Any, *, own: bool) -> str:
    """The conflict within a declaration; "" if there is none."""
    if default is not None and value is not None:
        return f"project config '{name}' cannot have both a 'default' and 'value' attribute"
    if own:
        if kind is not None and kind.name == "array" and kind.items is None:
            return (
                f"The configuration key '{name}' declares an array but does not specify the underlying type "
                "via the 'items' attribute"
            )
        if kind is not None and default is not None and not kind.fits(default):
            return f"The default value specified for configuration key '{name}' is not of the expected type '{kind}'"
        return ""
    if kind is not None:
        return f"Configuration key '{name}' is not namespaced by the project and should not define a type"
    if default is not None:
        return (
            f"Configuration key '{name}' is not namespaced by the project and should not define a default value. "
            "Did you mean to use the 'value' attribute instead of 'default'?"
        )
    return f"Configuration key '{name}' is namespaced and must provide an attribute 'value'" if value is None else ""


def _type(entry: Mapping[str, Any], where: str) -> ConfigType:
    name = entry.get("type")
    if name not in TYPES:
        allowed = ", ".join(json.dumps(each) for each in TYPES)
        raise DeclarationError("validate", f"{where}/type: value must be one of {allowed}")
    items = entry.get("items")
    if items is None:
        return ConfigType(name)
    if not isinstance(items, dict):
        raise DeclarationError("validate", f"{where}/items: expected object, but got {_json_type(items)}")
    return ConfigType(name, _type(items, f"{where}/items"))


def _json_type(value: Any) -> str:
    names = {str: "string", int: "number", float: "number", bool: "boolean", list: "array", dict: "object"}
    return names.get(type(value), "null")
