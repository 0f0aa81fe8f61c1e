"""A run takes some of what it has no time for all of; in the end, everything has its turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import sampling
from tests.sampling import has_turn, sample, turn

POSSIBLE = [*"abcdefg"]
COMMITS = [f"commit {number}" for number in range(50)]


@pytest.fixture(autouse=True)
def everyday(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run of everything."""
    monkeypatch.setattr(sampling, "EVERYTHING", False)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Check a commit out."""
    return lambda commit: monkeypatch.setenv("TURNS_OF", commit)


def test_each_of_a_list_has_its_turn_with_one_commit_or_another(at: Callable[[str], None]) -> None:
    seen: set[str] = set()
    for commit in COMMITS:
        at(commit)
        seen |= {*turn(POSSIBLE, 3)}

    assert seen == {*POSSIBLE}


def test_one_in_three_has_its_turn_and_the_same_with_the_same_commit(at: Callable[[str], None]) -> None:
    at("a commit")
    first = turn(POSSIBLE, 3)

    assert turn(POSSIBLE, 3) == first
    assert first in [POSSIBLE[start::3] for start in range(3)]


def test_where_fewer_than_three_are_possible_one_of_them_has_its_turn(at: Callable[[str], None]) -> None:
    for commit in COMMITS:
        at(commit)
        assert len(turn("ab", 3)) == 1


def test_each_name_has_its_turn_with_one_commit_in_three(at: Callable[[str], None]) -> None:
    turns = dict.fromkeys(POSSIBLE, 0)
    for commit in COMMITS:
        at(commit)
        for name in POSSIBLE:
            turns[name] += has_turn(name, 3)

    assert all(len(COMMITS) / 6 < times < len(COMMITS) / 2 for times in turns.values()), turns


def test_a_run_of_everything_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "EVERYTHING", True)

    assert turn(POSSIBLE, 3) == POSSIBLE
    assert all(has_turn(name, 3) for name in POSSIBLE)


def test_samples_of_one_commit_differ_by_whose_they_are(at: Callable[[str], None]) -> None:
    at("a commit")
    many = range(1000)

    assert sample(many, 5, "of mine") == sample(many, 5, "of mine") != sample(many, 5, "of yours")
