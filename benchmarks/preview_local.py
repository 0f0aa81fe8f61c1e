"""How long `make preview` takes on a stack that is up and unchanged."""

from __future__ import annotations

import statistics
import time

from benchmarks.figure import Figure
from benchmarks.local_stack import LocalStack, local_stack

PROMISED_SECONDS = 5.0
RUNS = 3


def measure() -> list[Figure]:
    """The median of several previews."""
    with local_stack() as stack:
        stack.run("up")
        seconds = statistics.median(_preview(stack) for _ in range(RUNS))
    return [Figure("preview-local", seconds, "s", PROMISED_SECONDS)]


def _preview(stack: LocalStack) -> float:
    started = time.monotonic()
    stack.run("preview")
    return time.monotonic() - started
