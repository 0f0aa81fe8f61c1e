"""A run takes some of what it has no time for all of."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet

from tests.sampling import mostly_nightly, sample


def nightly(parameter: object) -> bool:
    return isinstance(parameter, ParameterSet) and "nightly" in [mark.name for mark in parameter.marks]


def test_of_many_parameters_the_first_are_for_every_run() -> None:
    chosen = mostly_nightly("abcd", always=2)

    assert [*map(nightly, chosen)] == [False, False, True, True]
    assert chosen[:2] == ["a", "b"]


def test_a_parameter_of_the_night_keeps_its_value_its_name_and_its_marks() -> None:
    _, named = mostly_nightly(["a", pytest.param("b", id="second", marks=pytest.mark.e2e)])

    assert isinstance(named, ParameterSet)
    assert (named.values, named.id, [mark.name for mark in named.marks]) == (("b",), "second", ["e2e", "nightly"])


def test_samples_of_one_commit_differ_by_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMPLES_OF", "a commit")
    many = range(1000)

    assert sample(many, 5, "of mine") == sample(many, 5, "of mine") != sample(many, 5, "of yours")
