"""Results that are written as changes of a model are read back whole."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.compatibility.alike import condensed, expanded

PLAIN = {"refused": False, "status": [{"host": "a"}], "lb": [{"tags": {"a": "1"}, "ports": {"80": "tcp"}}]}
KEYS = st.sampled_from(["a", "b", "0", "1"])
VALUES = st.recursive(
    st.none() | st.lists(st.integers(0, 2), max_size=2), lambda inner: st.dictionaries(KEYS, inner, max_size=3)
)


def test_a_result_is_written_as_what_it_changes_of_its_model() -> None:
    tls = {"refused": False, "status": [{"host": "a"}], "lb": [{"tags": {}, "ports": {"80": "tcp", "443": "tls"}}]}

    written = condensed({"nlb-plain": PLAIN, "nlb-tls": tls, "node": {}}, {"nlb-": "nlb-plain"})

    assert written == {
        "nlb-plain": PLAIN,
        "nlb-tls": {"like": "nlb-plain", "lb": {"0": {"tags": {"without": ["a"]}, "ports": {"443": "tls"}}}},
        "node": {},
    }


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_what_was_written_is_read_back(model: dict[str, Any], other: dict[str, Any]) -> None:
    results = {"x-plain": model, "x-other": other}

    assert expanded(condensed(results, {"x-": "x-plain"})) == results
