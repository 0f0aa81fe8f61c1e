"""Random values of properties: everything that the wire and the state can hold, in small."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from local.plugins.values import UNKNOWN, Asset, ResourceReference, Secret

# Short keys and few of them: long ones prove no more, and generating them takes ten times as long.
keys = st.text(max_size=4)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**50), 2**50)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: not f.is_integer())
    | st.text()
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)


_special = (
    leaves
    | st.recursive(leaves, _nested, max_leaves=4).map(Secret)
    | st.sampled_from([UNKNOWN, ResourceReference("urn:pulumi:s::p::t::n", "id-1"), Asset((("text", "hello"),))])
)
values = st.recursive(_special, _nested, max_leaves=8)
# Top-level nulls are dropped on the way in.
properties = st.dictionaries(keys, values.filter(lambda value: value is not None), max_size=4)
