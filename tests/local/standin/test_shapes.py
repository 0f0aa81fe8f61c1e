"""The compiled check of a schema says what a JSON schema validator says."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.standin.shapes import compile_schema

PLAIN = st.sampled_from(["string", "integer", "number", "boolean"]).map(lambda kind: {"type": kind})
NAMES = st.sampled_from(["a", "b", "c"])


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.builds(
        lambda properties, required, more: {
            "type": "object",
            "properties": properties,
            "required": sorted(required),
            "additionalProperties": more,
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.sets(NAMES, max_size=1),
        st.booleans() | inner,
    )
    return named | inner.map(lambda items: {"type": "array", "items": items})


SCHEMAS = st.recursive(PLAIN | st.just({}), nested, max_leaves=6)
VALUES = st.recursive(
    st.text(max_size=2) | st.integers(-2, 2) | st.booleans() | st.floats(-2, 2).filter(lambda x: x != int(x)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_a_value_fits_exactly_if_a_validator_says_so(schema: dict[str, Any], value: Any) -> None:
    valid = jsonschema.Draft202012Validator(schema).is_valid(value)

    assert (compile_schema(schema)(value) is None) == valid


def test_a_misfit_names_its_place_and_rule() -> None:
    tag = {"type": "object", "properties": {"Key": {"type": "string"}}, "additionalProperties": False}
    check = compile_schema(
        {"type": "object", "properties": {"Tag": {"type": "array", "items": tag}}, "required": ["Tag"]}
    )

    assert str(check({"Tag": [{"Key": "a"}, {"Key": 1}]})) == "Tag[1].Key: 1 is not of type string"
    assert str(check({"Tag": [{"K": "a"}]})) == "Tag[0].K: is unknown"
    assert str(check({})) == "Tag: is required"


def test_a_keyword_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="keyword pattern"):
        compile_schema({"type": "string", "pattern": "a"})
