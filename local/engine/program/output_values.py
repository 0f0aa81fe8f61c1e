"""Properties on the wire as output values: whether each value is known or secret, and its dependencies.

Pure, over protobuf Structs: the engine's own values cannot hold the dependencies of a single value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf import struct_pb2

from local.plugins.wire import OUTPUT, SECRET, SIGNATURE, is_unknown

Dependencies = Mapping[str, Sequence[str]]
"""The dependencies of each property, as URNs."""


def as_outputs(properties: struct_pb2.Struct, dependencies: Dependencies) -> struct_pb2.Struct:
    """The properties with everything that is unknown, secret or from another resource as output values.

    Otherwise the SDK would pass an unknown to a function as None, and its answer would lack the property.
    """
    struct = struct_pb2.Struct()
    for name, value in properties.fields.items():
        needs = dependencies.get(name, ())
        if needs and not any(_is_marked(v) for v in _within(value)):
            _set_output(struct.fields[name], value, secret=False, needs=needs)
        else:
            _set(struct.fields[name], value, needs)
    return struct


def dependencies_of(properties: struct_pb2.Struct, before: Dependencies) -> Dependencies:
    """The dependencies of each property, with those known `before`: the SDK drops them from a function's answer."""
    needed = {name: _named(value) for name, value in properties.fields.items()}
    return {name: sorted({*before.get(name, ()), *urns}) for name, urns in needed.items() if name in before or urns}


def _set(target: struct_pb2.Value, value: struct_pb2.Value, needs: Sequence[str]) -> None:
    fields = value.struct_value.fields
    if is_unknown(value):
        _set_output(target, None, secret=False, needs=needs)
    elif _signature(value) == SECRET:
        inner = None if any(is_unknown(v) for v in _within(fields["value"])) else fields["value"]
        _set_output(target, inner, secret=True, needs=needs)
    elif _signature(value) == OUTPUT:
        secret = "secret" in fields and fields["secret"].bool_value
        inner = fields.get("value")
        _set_output(target, inner, secret=secret, needs=sorted({*_named(value), *needs}))
    elif value.HasField("struct_value") and not _signature(value):
        target.struct_value.SetInParent()
        for name, item in fields.items():
            _set(target.struct_value.fields[name], item, needs)
    elif value.HasField("list_value"):
        target.list_value.SetInParent()
        for item in value.list_value.values:
            _set(target.list_value.values.add(), item, needs)
    else:
        target.CopyFrom(value)


def _set_output(
    target: struct_pb2.Value, value: struct_pb2.Value | None, *, secret: bool, needs: Sequence[str]
) -> None:
    """Write an output value; without a `value` it is unknown."""
    fields = target.struct_value.fields
    fields[SIGNATURE].string_value = OUTPUT
    if value is not None:
        fields["value"].CopyFrom(value)
    if secret:
        fields["secret"].bool_value = True
    if needs:
        fields["dependencies"].list_value.extend(needs)


def _is_marked(value: struct_pb2.Value) -> bool:
    return is_unknown(value) or _signature(value) in (SECRET, OUTPUT)


def _signature(value: struct_pb2.Value) -> str:
    fields = value.struct_value.fields
    return fields[SIGNATURE].string_value if SIGNATURE in fields else ""


def _named(value: struct_pb2.Value) -> set[str]:
    found = [v.struct_value.fields for v in _within(value) if _signature(v) == OUTPUT]
    return {urn.string_value for f in found if "dependencies" in f for urn in f["dependencies"].list_value.values}


def _within(value: struct_pb2.Value) -> Iterator[struct_pb2.Value]:
    """The value and all values in it."""
    yield value
    for item in value.struct_value.fields.values():
        yield from _within(item)
    for item in value.list_value.values:
        yield from _within(item)
