"""Values keep their meaning over the wire."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from local.plugins.values import SIGNATURE, UNKNOWN, Asset, ResourceReference, Secret, hidden_like
from local.plugins.wire import WireError, from_struct, mask, to_struct

# Short keys and few of them: long ones prove no more, and generating them takes ten times as long.
_keys = st.text(max_size=4)
_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**50), 2**50)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: not f.is_integer())
    | st.text()
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3)


_special = (
    _leaves
    | st.recursive(_leaves, _nested, max_leaves=4).map(Secret)
    | st.sampled_from([UNKNOWN, ResourceReference("urn:pulumi:s::p::t::n", "id-1"), Asset((("text", "hello"),))])
)
_values = st.recursive(_special, _nested, max_leaves=8)
properties = st.dictionaries(_keys, _values, max_size=4)


@given(properties)
def test_values_round_trip_over_the_wire(value: dict[str, Any]) -> None:
    assert from_struct(to_struct(value)) == value


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


def test_masking_hides_exactly_the_secrets() -> None:
    assert mask({"a": Secret({"b": "x"}), "c": ["y"]}) == {"a": "[secret]", "c": ["y"]}


def test_outputs_are_secret_where_the_inputs_are() -> None:
    given = {
        "token": Secret("x"),
        "nested": {"deep": Secret("y"), "open": 1},
        "list": [Secret("z")],
        "later": Secret("s"),
    }
    outputs = {"token": "x", "nested": {"deep": "y", "open": 1}, "list": ["z", "new"], "later": UNKNOWN, "extra": "z"}

    assert hidden_like(outputs, given) == {
        "token": Secret("x"),
        "nested": {"deep": Secret("y"), "open": 1},
        "list": Secret(["z", "new"]),
        "later": UNKNOWN,
        "extra": "z",
    }
