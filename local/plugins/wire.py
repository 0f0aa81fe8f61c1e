"""Property values on the wire: protobuf Structs to our values and back.

Pulumi encodes what JSON lacks as marked strings (unknowns) and marked maps (secrets, resource references, output
values, assets) in a Struct. Its numbers are doubles; whole ones are read as int, so that a state keeps its form.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import struct_pb2

from local.plugins.values import (
    SECRET,
    SIGNATURE,
    UNKNOWN,
    Archive,
    Asset,
    PropertyMap,
    ResourceReference,
    Secret,
    Value,
    without_secrets,
)

RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE: Final = "0def7320c3a5731c473e5ecbe6d01bc7"
UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
# Pulumi has one sentinel a type (string, bool, number, array, asset, archive, object); they all mean "not known yet".
_UNKNOWN_TEXTS: Final = frozenset(
    {
        UNKNOWN_TEXT,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


class WireError(Exception):
    """A Struct contains a marked map that is malformed or unknown here."""


def from_struct(struct: struct_pb2.Struct) -> PropertyMap:
    """A property map of the wire as our values."""
    return {key: _from_value(field) for key, field in struct.fields.items()}


def to_struct(values: PropertyMap, *, secrets: bool = True, resources: bool = True) -> struct_pb2.Struct:
    """Our values for the wire; without `secrets` or `resources`, these become plain values, ids or URNs."""
    struct = struct_pb2.Struct()
    for key, value in values.items():
        _set_value(struct.fields[key], value, secrets, resources)
    return struct


def mask(value: Value) -> Any:
    """A value as JSON for people: [secret] for secrets, and else as on the wire."""
    if isinstance(value, dict):
        return {key: mask(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mask(item) for item in value]
    if isinstance(value, Secret):
        return "[secret]"
    if isinstance(value, ResourceReference):
        return mask(_reference(value, resources=True))
    if isinstance(value, Asset | Archive):
        return mask(_file(value))
    return UNKNOWN_TEXT if value is UNKNOWN else value


def _from_value(value: struct_pb2.Value) -> Value:
    match value.WhichOneof("kind"):
        case "string_value":
            return UNKNOWN if value.string_value in _UNKNOWN_TEXTS else value.string_value
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "bool_value":
            return value.bool_value
        case "list_value":
            return [_from_value(v) for v in value.list_value.values]
        case "struct_value":
            return _from_map(value.struct_value)
        case _:
            return None


def _from_map(struct: struct_pb2.Struct) -> Value:
    fields = struct.fields
    if SIGNATURE not in fields:
        return {k: _from_value(v) for k, v in fields.items()}
    signature = fields[SIGNATURE].string_value
    rest = {k: _from_value(v) for k, v in fields.items() if k != SIGNATURE}
    if signature == SECRET:
        if "value" not in rest:
            raise WireError("a secret on the wire has no value")
        return Secret(without_secrets(rest["value"]))
    if signature == RESOURCE:
        if not isinstance(rest.get("urn"), str):
            raise WireError("a resource reference on the wire has no URN")
        return ResourceReference(rest["urn"], rest.get("id"), str(rest.get("packageVersion", "")))
    if signature == OUTPUT:
        inner = rest.get("value", UNKNOWN)
        return Secret(without_secrets(inner)) if rest.get("secret") is True else inner
    if signature == ASSET:
        return Asset(tuple(rest.items()))
    if signature == ARCHIVE:
        return Archive(tuple(rest.items()))
    raise WireError(f"a value on the wire has the unknown signature {signature}")


def _set_value(target: struct_pb2.Value, value: Value, secrets: bool, resources: bool) -> None:
    if value is None:
        target.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif value is UNKNOWN:
        target.string_value = UNKNOWN_TEXT
    elif isinstance(value, list):
        target.list_value.SetInParent()
        for item in value:
            _set_value(target.list_value.values.add(), item, secrets, resources)
    elif isinstance(value, dict):
        target.struct_value.SetInParent()
        for key, item in value.items():
            _set_value(target.struct_value.fields[key], item, secrets, resources)
    elif isinstance(value, Secret):
        marked = {SIGNATURE: SECRET, "value": value.value} if secrets else value.value
        _set_value(target, marked, secrets, resources)
    elif isinstance(value, ResourceReference):
        _set_value(target, _reference(value, resources), secrets, resources)
    elif isinstance(value, Asset | Archive):
        _set_value(target, _file(value), secrets, resources)
    else:
        raise WireError(f"a value of type {type(value).__name__} cannot be sent on the wire")


def _file(value: Asset | Archive) -> PropertyMap:
    return {SIGNATURE: ASSET if isinstance(value, Asset) else ARCHIVE, **dict(value.properties)}


def _reference(value: ResourceReference, resources: bool) -> Value:
    if not resources:
        return value.urn if value.id is None else (value.id or UNKNOWN)
    marked: PropertyMap = {SIGNATURE: RESOURCE, "urn": value.urn}
    if value.id is not None:
        marked["id"] = value.id
    if value.package_version:
        marked["packageVersion"] = value.package_version
    return marked
