"""Values keep their meaning over the wire and through the state file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from local.engine.stack.resource import ResourceState, Timeouts, decode, encode, from_json, to_json, with_secret_outputs
from local.engine.stack.secrets import PassphraseCrypter
from tests.local.engine.random_values import properties, values

from local.plugins.json_values import mask
from local.plugins.values import UNKNOWN, ResourceReference, Secret
from local.plugins.wire import SIGNATURE, WireError, from_struct, to_struct

CRYPTER = PassphraseCrypter(b"k" * 32, "v1:salt")


@given(properties)
def test_values_round_trip_over_the_wire(value: dict[str, Any]) -> None:
    assert from_struct(to_struct(value)) == value


@given(values)
def test_values_round_trip_through_the_state(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value, CRYPTER))), CRYPTER) == value


@given(st.dictionaries(st.text(), st.text(min_size=1).map(Secret), min_size=1))
def test_without_secrets_the_wire_has_the_plain_values(value: dict[str, Secret]) -> None:
    assert from_struct(to_struct(value, secrets=False)) == {k: v.value for k, v in value.items()}


def test_a_reference_is_sent_as_id_or_urn_where_references_are_not_accepted() -> None:
    sent = to_struct(
        {
            "custom": ResourceReference("urn:x", "id-1"),
            "component": ResourceReference("urn:y"),
            "new": ResourceReference("urn:z", ""),
        },
        resources=False,
    )
    assert from_struct(sent) == {"custom": "id-1", "component": "urn:y", "new": UNKNOWN}


def test_an_output_value_is_flattened() -> None:
    marked = {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    struct = struct_pb2.Struct()
    struct.update(
        {"known": {**marked, "value": 1}, "hidden": {**marked, "value": "x", "secret": True}, "later": marked}
    )
    assert from_struct(struct) == {"known": 1, "hidden": Secret("x"), "later": UNKNOWN}


def test_an_unknown_signature_is_an_error() -> None:
    struct = struct_pb2.Struct()
    struct.update({"x": {SIGNATURE: "nonsense"}})
    with pytest.raises(WireError, match="nonsense"):
        from_struct(struct)


def test_a_resource_round_trips_through_the_state_with_all_its_options() -> None:
    resource = ResourceState(
        urn="urn:pulumi:s::p::t:m:T::n",
        type="t:m:T",
        custom=True,
        id="id-1",
        inputs={"a": Secret({"b": 1})},
        outputs={"c": [1, None]},
        parent="urn:parent",
        provider="urn:provider::id",
        dependencies=("urn:d",),
        property_dependencies={"a": ("urn:d",)},
        protect=True,
        retain_on_delete=True,
        deleted_with="urn:w",
        delete=True,
        additional_secret_outputs=("c",),
        ignore_changes=("x",),
        replace_on_changes=("y",),
        timeouts=Timeouts(create=300, read=20),
        init_errors=("not ready",),
        source_position="project:///x.py#1",
        stack_trace=("project:///x.py#1", "", "project:///__main__.py#9"),
        created="2026-01-01T00:00:00Z",
        modified="2026-01-01T00:00:00Z",
    )
    assert from_json(json.loads(json.dumps(to_json(resource, CRYPTER))), CRYPTER) == resource


def test_unknown_fields_round_trip_through_the_state() -> None:
    data = {
        "urn": "urn:pulumi:s::p::t:m:T::n",
        "custom": True,
        "type": "t:m:T",
        "ofTomorrow": {"secret": encode(Secret("x"), CRYPTER), "list": [1, None]},
    }

    resource = from_json(data, CRYPTER)

    assert resource.unused == {"ofTomorrow": {"secret": Secret("x"), "list": [1, None]}}
    assert from_json(to_json(resource, CRYPTER), CRYPTER) == resource


def test_masking_hides_exactly_the_secrets() -> None:
    assert mask({"a": Secret({"b": "x"}), "c": ["y"]}) == {"a": "[secret]", "c": ["y"]}


def test_outputs_become_secret_if_the_input_or_the_program_makes_them_so() -> None:
    resource = ResourceState(
        "urn", "t", custom=True,
        inputs={"token": Secret("x"), "nested": {"deep": Secret("y"), "open": 1}},
        outputs={"token": "x", "nested": {"deep": "y", "open": 1}, "extra": "z", "later": UNKNOWN},
        additional_secret_outputs=("extra", "later"),
    )  # fmt: skip
    assert with_secret_outputs(resource, from_inputs=True).outputs == {
        "token": Secret("x"),
        "nested": {"deep": Secret("y"), "open": 1},
        "extra": Secret("z"),
        "later": UNKNOWN,
    }
    assert with_secret_outputs(resource, from_inputs=False).outputs["token"] == "x"
