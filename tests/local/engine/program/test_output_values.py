"""Properties as output values: for each value whether it is unknown or secret, and its dependencies."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st

from local.engine.program.output_values import as_outputs, dependencies_of
from local.plugins.wire import OUTPUT, SECRET, SIGNATURE, UNKNOWN_TEXT, from_struct, to_struct
from tests.local.engine.random_values import properties

pytestmark = pytest.mark.engine

URN = "urn:pulumi:dev::test::memory:index:Thing::one"


def struct(values: dict[str, Any]) -> struct_pb2.Struct:
    message = struct_pb2.Struct()
    message.update(values)
    return message


def output(**fields: Any) -> dict[str, Any]:
    return {SIGNATURE: OUTPUT, **fields}


def secret(value: Any) -> dict[str, Any]:
    return {SIGNATURE: SECRET, "value": value}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        (["plain", 1.0, True], ["plain", 1.0, True]),
        (UNKNOWN_TEXT, output()),
        ({"a": UNKNOWN_TEXT, "b": "plain"}, {"a": output(), "b": "plain"}),
        ([UNKNOWN_TEXT], [output()]),
        (secret("hidden"), output(value="hidden", secret=True)),
        (secret(UNKNOWN_TEXT), output(secret=True)),
        (secret({"a": [UNKNOWN_TEXT]}), output(secret=True)),
        (output(value="known"), output(value="known")),
        ({"a": {"b": secret("hidden")}}, {"a": {"b": output(value="hidden", secret=True)}}),
    ],
)
def test_unknown_and_secret_values_become_outputs(value: Any, expected: Any) -> None:
    assert MessageToDict(as_outputs(struct({"property": value}), {})) == {"property": expected}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", output(value="plain", dependencies=[URN])),
        ({"a": [1.0]}, output(value={"a": [1.0]}, dependencies=[URN])),
        (UNKNOWN_TEXT, output(dependencies=[URN])),
        (secret("hidden"), output(value="hidden", secret=True, dependencies=[URN])),
        ({"a": UNKNOWN_TEXT, "b": "plain"}, {"a": output(dependencies=[URN]), "b": "plain"}),
        (output(value=1.0, dependencies=["other"]), output(value=1.0, dependencies=["other", URN])),
    ],
)
def test_a_value_that_depends_on_a_resource_becomes_an_output_with_that_dependency(value: Any, expected: Any) -> None:
    assert MessageToDict(as_outputs(struct({"property": value}), {"property": [URN]})) == {"property": expected}


def test_a_resource_reference_is_not_wrapped() -> None:
    reference = {SIGNATURE: "5cf8f73096256a8f31e491e813e4eb8e", "urn": URN}
    assert MessageToDict(as_outputs(struct({"property": [reference]}), {})) == {"property": [reference]}


def test_dependencies_are_found_in_nested_values() -> None:
    properties = struct({"one": {"a": [output(dependencies=["x"]), output(value=1)]}, "two": "plain"})
    assert dependencies_of(properties, {}) == {"one": ["x"]}


def test_dropped_dependencies_are_kept_while_the_property_exists() -> None:
    properties = struct({"one": output(dependencies=["x"])})
    assert dependencies_of(properties, {"one": ["before"], "gone": ["before"]}) == {"one": ["before", "x"]}


@given(properties, st.lists(st.sampled_from(["urn:one", "urn:two"]), unique=True))
def test_wrapping_output_values_again_does_not_change_their_meaning(
    properties: dict[str, Any], needs: list[str]
) -> None:
    wire = to_struct(properties)
    dependencies = dict.fromkeys(properties, sorted(needs)) if needs else {}

    once = as_outputs(wire, dependencies)
    twice = as_outputs(once, dependencies)

    assert from_struct(once) == from_struct(wire)
    assert once == twice
    reported = dependencies_of(once, {})
    assert set(reported) <= set(dependencies) and all(urns == sorted(needs) for urns in reported.values())
