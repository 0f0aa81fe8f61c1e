"""Chooses what a run tries of more than it has time for: another part with every commit.

`EVERYTHING=1` runs all that takes turns, `TURNS_OF=COMMIT` what a run of that commit chose, `CRASH_POINTS=all` has
crash tests strike at every call.
"""

from __future__ import annotations

import os
import random
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

EVERY_CALL = os.environ.get("CRASH_POINTS") == "all"
EVERYTHING = EVERY_CALL or os.environ.get("EVERYTHING") == "1"


def sample(possible: Sequence[T], number: int, of: str = "") -> Sequence[T]:
    """So many of these, the same for the same commit; `of`: whose sample it is, where several are taken of the same."""
    return random.Random(f"{commit()}{of}").sample(possible, number)


def turn(possible: Sequence[T], turns: int) -> Sequence[T]:
    """Those of these whose turn it is, in their order: one in so many, and at least one."""
    turns = min(turns, len(possible))
    return possible if EVERYTHING else possible[_number(turns) :: turns]


def has_turn(name: str, turns: int) -> bool:
    """Whether it is the turn of what is called so: it is with one commit in so many."""
    return EVERYTHING or (zlib.crc32(name.encode()) + _number(turns)) % turns == 0


def _number(turns: int) -> int:
    return random.Random(commit()).randrange(turns)


def commit() -> str:
    """The commit that chooses, asked for once: the workers of a run inherit it. Empty outside a checkout."""
    if "TURNS_OF" not in os.environ:
        asked = ["git", "rev-parse", "HEAD"]
        done = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        os.environ["TURNS_OF"] = done.stdout.strip()
    return os.environ["TURNS_OF"]
