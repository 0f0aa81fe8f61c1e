"""Whatever write was a process's last, and whichever answer is lost: the rest is found and finished.

Every write with CRASH_POINTS=all (`make crash-test`) or on a fast simulator; otherwise, one test takes the odd writes
and the other one the even ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from cloud_controller.kube import Object
from tests.contract.harness import Harness, differences, web
from tests.contract.process import Process
from tests.contract.wire import Died

PART = "load_balancers"

Step = tuple[Object | None, Sequence[Object]]
"""The Service, or None once it is deleted, and its nodes."""


def life(harness: Harness) -> list[Step]:
    """A load balancer's creation, changes of ports, settings and members, its replacement and deletion."""
    one, two, three = (harness.node(name) for name in ("one", "two", "three"))
    changed = web(harness, 8080, 9443, udp=[8443], annotations=harness.changed_annotations, offset=1)
    replaced = web(harness, 8080, annotations=harness.replacing_annotations)
    return [
        (web(harness, 8080, 8443), (one, two)),
        (changed, (one, two)),
        (changed, (two, three)),
        (replaced, (two, three)),
        (None, ()),
    ]


def bring(process: Process, step: Step) -> None:
    """Do what the step asks for."""
    service, nodes = step
    process.bring(None if service is None else process.desired(service, nodes))


def after_every_write(harness: Harness, goes_wrong: Callable[[int], None], first: int = 1) -> None:
    """Let this go wrong at the n-th write of each step, for every n. The account must be as if it had not."""
    first, stride = (1, 1) if os.environ.get("CRASH_POINTS") == "all" else (min(first, harness.stride), harness.stride)
    steps, before = life(harness), harness.snapshot()
    undisturbed = []
    for step in steps:
        harness.wire.writes.clear()
        bring(Process(harness), step)
        undisturbed.append((step, harness.snapshot(), len(harness.wire.writes)))
    assert harness.snapshot() == before, "a deletion leaves nothing"
    assert all(writes for _, _, writes in undisturbed), "every step writes"

    for number in range(first, max(writes for _, _, writes in undisturbed) + 1, stride):
        for step, expected, writes in undisturbed:
            if number > writes and step in steps[1:-1]:
                continue  # Nothing would happen to it, and the others do not need it.
            goes_wrong(number)
            try:
                bring(Process(harness), step)
            except Died:
                harness.wire.peace()
                bring(Process(harness), step)
                happened = True
            else:
                happened = harness.wire.happened
            assert happened == (number <= writes), f"write {number} of {writes}: {harness.wire.writes}"
            assert not differences(harness.snapshot(), expected), f"after write {number} of {writes}"
    harness.wire.peace()


def test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes(harness: Harness) -> None:
    after_every_write(harness, harness.wire.die)


def test_whichever_answer_is_lost_the_outcome_is_the_same(harness: Harness) -> None:
    after_every_write(harness, harness.wire.lose_answer, first=2)
