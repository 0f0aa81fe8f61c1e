"""Python's search for cycles, in a process that is short and keeps most of what it makes."""

from __future__ import annotations

import gc
import sys
from typing import NoReturn


def search_seldom() -> None:
    """To look through everything again and again costs a sixth of a run."""
    gc.set_threshold(100_000, 20, 20)


def leave(code: int) -> NoReturn:
    """Exit, and leave the memory to the system.

    At its end Python searches everything several times: a quarter of the time of a run that imports pulumi_kubernetes.
    """
    gc.freeze()
    sys.exit(code)
