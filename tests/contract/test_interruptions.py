"""Whatever write was a process's last, and whichever answer is lost: the rest is found and finished.

Every write with CRASH_POINTS=all (`make crash-test`) or on a fast simulator; otherwise, one test takes the odd writes
and the other one the even ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from cloud_controller.load_balancers.model import LoadBalancerModel
from tests.contract.harness import Harness, desired, differences, web
from tests.contract.process import Process
from tests.contract.wire import Died

PART = "load_balancers"


def life(harness: Harness) -> list[LoadBalancerModel | None]:
    """What a load balancer becomes: created, with other ports and settings, with other members, replaced, deleted."""
    one, two, three = (harness.node(name) for name in ("one", "two", "three"))
    changed = web(harness, 8080, 9443, udp=[8443], annotations=harness.changed_annotations, offset=1)
    replaced = web(harness, 8080, annotations=harness.replacing_annotations)
    cloud = harness.new_cloud()
    return [
        desired(cloud, web(harness, 8080, 8443), (one, two)),
        desired(cloud, changed, (one, two)),
        desired(cloud, changed, (two, three)),
        desired(cloud, replaced, (two, three)),
        None,
    ]


def after_every_write(harness: Harness, goes_wrong: Callable[[int], None], first: int = 1) -> None:
    """Let this go wrong at the n-th write of each step, for every n. The account must be as if it had not."""
    first, stride = (1, 1) if os.environ.get("CRASH_POINTS") == "all" else (min(first, harness.stride), harness.stride)
    steps, before = life(harness), harness.snapshot()
    undisturbed = []
    for step in steps:
        harness.wire.writes.clear()
        Process(harness).bring(step)
        undisturbed.append((step, harness.snapshot(), len(harness.wire.writes)))
    assert harness.snapshot() == before, "a deletion leaves nothing"
    assert all(writes for _, _, writes in undisturbed), "every step writes"

    for number in range(first, max(writes for _, _, writes in undisturbed) + 1, stride):
        for step, expected, writes in undisturbed:
            if number > writes and step is not steps[0] and step is not None:
                continue  # Nothing would happen to it, and the others do not need it.
            goes_wrong(number)
            try:
                Process(harness).bring(step)
            except Died:
                harness.wire.peace()
                Process(harness).bring(step)
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
