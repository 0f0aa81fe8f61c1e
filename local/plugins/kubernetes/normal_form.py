"""Inputs in the form that Kubernetes' API types give them, as pulumi-kubernetes has them in the state. Pure.

An empty value (`{}`, `[]`, `""`, false, 0) of a plain Go field with `omitempty` is dropped; one of a pointer, or of a
field without `omitempty`, stays. Quantities become canonical. `api_fields.json`, which `tools/api-fields` writes, says
which field is which. Custom resources, Secrets and CustomResourceDefinitions keep what they are given.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from local.plugins.kubernetes.api_types import ApiType
from local.plugins.kubernetes.quantities import canonical_quantity
from local.plugins.values import PropertyMap, Secret, Value

_DROPPED, _EACH, _QUANTITY = "-", "*", "quantity"
# A key has underscores in Python where the API has dashes, as in the SDK's types.
_DASHED = {
    f"x_kubernetes_{name}": f"x-kubernetes-{name.replace('_', '-')}"
    for name in (
        "embedded_resource",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "preserve_unknown_fields",
        "validations",
    )
}
_UNDERSCORED = {dashed: underscored for underscored, dashed in _DASHED.items()}


def in_normal_form(api: ApiType, inputs: PropertyMap) -> PropertyMap:
    """The inputs as the API types write them; unknown fields stay."""
    struct = _api_fields()["kinds"].get(f"{api.api_version}/{api.kind}", "")
    if not struct or (api.group, api.kind) == ("", "Secret"):
        return inputs
    return dict(_written(struct, inputs))


def with_dashes(value: Value) -> Value:
    """The value with the keys `x_kubernetes_...` as the API server spells them."""
    return _renamed(value, _DASHED)


def with_underscores(value: Value) -> Value:
    """The reverse of `with_dashes`: as the SDK spells these keys."""
    return _renamed(value, _UNDERSCORED)


@cache
def _api_fields() -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name("api_fields.json").read_text()))


def _written(content: str, value: Value) -> Value:
    """The value of a field whose content is a struct, a quantity, or a list or map of them."""
    if isinstance(value, Secret):
        return Secret(_written(content, value.value))
    if content.startswith(_EACH):
        inner = content.removeprefix(_EACH)
        if isinstance(value, list):
            return [_written(inner, item) for item in value]
        return {k: _written(inner, v) for k, v in value.items()} if isinstance(value, dict) else value
    if content == _QUANTITY:
        plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        return canonical_quantity(f"{value}") if plain else value
    if not isinstance(value, dict):
        return value
    fields = _api_fields()["structs"].get(content, {})
    written = {key: (fields.get(key, ""), item) for key, item in value.items()}
    return {
        key: result
        for key, (entry, item) in written.items()
        if not _is_empty(result := _written(entry.removeprefix(_DROPPED), item)) or not entry.startswith(_DROPPED)
    }


def _is_empty(value: Value) -> bool:
    plain = value.value if isinstance(value, Secret) else value
    return isinstance(plain, str | bool | int | float | list | dict) and not plain


def _renamed(value: Value, names: dict[str, str]) -> Value:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return Secret(_renamed(value.value, names)) if isinstance(value, Secret) else value
