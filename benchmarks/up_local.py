"""How long `make up` takes from nothing to a load balancer that answers, with .venv and binaries ready."""

from __future__ import annotations

import time

from benchmarks.figure import Figure
from benchmarks.local_stack import local_stack

PROMISED_SECONDS = 90.0


def measure() -> list[Figure]:
    """One run, in an empty state folder."""
    with local_stack() as stack:
        started = time.monotonic()
        stack.run("up")
        stack.wait_answering()
        return [Figure("up-local", time.monotonic() - started, "s", PROMISED_SECONDS)]
