"""Patterns of others: linear, bounded, and refused with the reason."""

from __future__ import annotations

import pytest

from cloud_controller import patterns


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing )"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("a" * (patterns.LONGEST + 1), "256 characters"),
        ("(((.?){10}){10}){10}", "too large"),
    ],
)
def test_what_could_take_long_is_no_pattern(pattern: str, why: str) -> None:
    with pytest.raises(patterns.InvalidPattern, match=why.replace(")", r"\)")):
        patterns.of_author(pattern, is_glob=False)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("public-*", "public-a", True),
        ("public-*", "not-public-a", False),
        ("public-?", "public-ab", False),
        ("[!p]*", "dmz", True),
        ("a.b", "axb", False),
        ("netz-*", "netz-ü\n", True),
    ],
)
def test_a_glob_is_for_the_whole_text(pattern: str, text: str, matches: bool) -> None:
    assert patterns.is_whole(patterns.glob(pattern), text) == matches


@pytest.mark.parametrize(
    ("text", "matches"), [("https", True), ("HttpS", True), ("http\u017f", False), ("http", False)]
)
def test_any_case_is_that_of_ascii_letters(text: str, matches: bool) -> None:
    assert patterns.is_whole(patterns.any_case("https"), text) == matches


def test_in_lower_case_only_ascii_letters_change() -> None:
    assert patterns.lower("TLS\u212a\u0130") == "tls\u212a\u0130"
