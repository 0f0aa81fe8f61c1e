"""Chooses what a test tries of more than it has time for: another sample with every commit."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def sample(possible: Sequence[T], number: int, of: str = "") -> Sequence[T]:
    """So many of these, the same for the same commit; `of`: whose sample it is, where several are taken of the same."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return random.Random(f"{done.stdout.strip()}{of}").sample(possible, number)
