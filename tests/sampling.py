"""Chooses what a run tries of more than it has time for.

Of tests that do the same with one input after another, `make test` runs a few and `make test-all` every one. Crash
tests strike at some calls, others with every commit, or with `CRASH_POINTS=all` at every call.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")

EVERY_CALL = os.environ.get("CRASH_POINTS") == "all"


def mostly_nightly(possible: Iterable[object], always: int = 1) -> Sequence[object]:
    """The parameters of a test, of which only the first are for every run."""
    parameters = list(possible)
    return [*parameters[:always], *map(_nightly, parameters[always:])]


def _nightly(each: object) -> ParameterSet:
    if isinstance(each, ParameterSet):
        return pytest.param(*each.values, id=each.id, marks=[*each.marks, pytest.mark.nightly])
    return pytest.param(each, marks=pytest.mark.nightly)


def sample(possible: Sequence[T], number: int, of: str = "") -> Sequence[T]:
    """So many of these, the same for the same commit; `of`: whose sample it is, where several are taken of the same."""
    return random.Random(f"{commit()}{of}").sample(possible, number)


def commit() -> str:
    """The commit that chooses, asked for once: the workers of a run inherit it. Empty outside a checkout."""
    if "SAMPLES_OF" not in os.environ:
        asked = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        os.environ["SAMPLES_OF"] = done.stdout.strip()
    return os.environ["SAMPLES_OF"]
