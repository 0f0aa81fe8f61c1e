"""How long `make preview` and `make up` take on a stack that is up and unchanged."""

from __future__ import annotations

import statistics
import time

from benchmarks.figure import Figure
from benchmarks.local_stack import LocalStack, local_stack

PROMISED_SECONDS = 7.0
PROMISED_UP_SECONDS = 13.0
RUNS = 3


def measure() -> list[Figure]:
    """The median of several previews."""
    return [Figure("preview-local", _median("preview"), "s", PROMISED_SECONDS)]


def noop_up() -> list[Figure]:
    """The median of several updates that change nothing."""
    return [Figure("noop-up-local", _median("up"), "s", PROMISED_UP_SECONDS)]


def _median(command: str) -> float:
    with local_stack() as stack:
        stack.run("up")
        return statistics.median(_seconds(stack, command) for _ in range(RUNS))


def _seconds(stack: LocalStack, command: str) -> float:
    started = time.monotonic()
    stack.run(command)
    return time.monotonic() - started
