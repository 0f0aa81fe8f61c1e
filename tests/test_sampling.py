"""A run takes some of what it has no time for all of; in the end, everything has its turn."""

from __future__ import annotations

import pytest

from tests import sampling
from tests.sampling import sample, turn

POSSIBLE = [*"abcdefg"]


@pytest.fixture(autouse=True)
def everyday(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run of everything."""
    monkeypatch.setattr(sampling, "EVERYTHING", False)


def turns_at(commit: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sampling, "_commit", lambda: commit)
    return [*turn(POSSIBLE, 3)]


def test_each_has_its_turn_with_one_commit_or_another(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {each for number in range(50) for each in turns_at(f"commit {number}", monkeypatch)}

    assert seen == {*POSSIBLE}


def test_one_in_three_has_its_turn_and_the_same_commit_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = turns_at("a commit", monkeypatch)

    assert turns_at("a commit", monkeypatch) == first
    assert first in [POSSIBLE[start::3] for start in range(3)]


def test_a_run_of_everything_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "EVERYTHING", True)

    assert turn(POSSIBLE, 3) == POSSIBLE


def test_samples_of_one_commit_differ_by_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_commit", lambda: "a commit")
    many = range(1000)

    assert sample(many, 5, "of mine") == sample(many, 5, "of mine") != sample(many, 5, "of yours")
