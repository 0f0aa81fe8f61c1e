"""Chooses what a run tries of more than it has time for: another sample with every commit, all with EVERYTHING=1."""

from __future__ import annotations

import functools
import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

EVERYTHING = os.environ.get("EVERYTHING") == "1"
"""Whether this run has the time: `make test-all` and `make crash-test`."""


def sample(possible: Sequence[T], number: int, of: str = "") -> Sequence[T]:
    """So many of these, the same for the same commit; `of`: whose sample it is, where several are taken of the same."""
    return random.Random(f"{_commit()}{of}").sample(possible, number)


def turn(possible: Sequence[T], turns: int) -> Sequence[T]:
    """Those of these whose turn it is, in their order: one in so many. All of them with EVERYTHING=1."""
    return possible if EVERYTHING else possible[random.Random(_commit()).randrange(turns) :: turns]


def has_turn(name: str, turns: int) -> bool:
    """Whether it is the turn of what is called so, as `turn` says it of a part of a list."""
    return EVERYTHING or random.Random(f"{_commit()}{name}").randrange(turns) == 0


@functools.cache
def _commit() -> str:
    """The checked-out commit; empty outside a checkout."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
