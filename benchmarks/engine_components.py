"""The speed of the embedded engine by itself: a thousand components without real objects."""

from __future__ import annotations

import statistics

from benchmarks.engine_stack import engine_stack
from benchmarks.figure import Figure

RUNS = 3
CLI_SECONDS = {"preview": 7.6, "up": 58.0, "noop": 6.9}
"""What Pulumi's CLI took for 1,001 resources on such a machine, with a file backend."""

PROGRAM = """
import pulumi


class Part(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("benchmark:index:Part", name, {{}})
        self.register_outputs({{}})


for number in range({count}):
    Part(f"part-{{number}}")
"""


def measure(count: int, what: str) -> list[Figure]:
    """The median of several runs of `preview` or `up` of a new stack, or `noop`: a preview afterwards."""
    with engine_stack(PROGRAM.format(count=count)) as stack:
        floors, seconds = [], []
        if what == "noop":
            stack.seconds("up")
        for _ in range(RUNS):
            floors.append(stack.floor())
            if what == "up":
                stack.reset()
            seconds.append(stack.seconds("up" if what == "up" else "preview"))
    name = f"engine-{count}-{what}"
    return [Figure(name, statistics.median(seconds), "s", CLI_SECONDS[what], floor=statistics.median(floors))]
