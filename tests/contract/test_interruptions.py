"""Whatever write was a process's last, and whichever answer is lost: the rest is found and finished.

Every write by itself with CRASH_POINTS=all (`make crash-test`) or on a fast simulator. On a slow one, the first writes
of each step in one go, because those of a creation are among them, and by themselves a sample that the commit chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from cloud_controller.load_balancers.model import LoadBalancerModel
from tests.contract.harness import Harness, desired, differences, web
from tests.contract.process import Process
from tests.contract.wire import Died
from tests.sampling import EVERY_CALL, sample

PART = "load_balancers"
FIRST = range(1, 5)
"""The writes that go wrong one after the other in one go."""

patient = pytest.mark.timeout(7200 if EVERY_CALL else 1200)
"""On the test itself, so that it counts before what a cloud's `MARKS` say."""


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


def points(writes: int, stride: int, of: str) -> Sequence[range]:
    """The writes that go wrong in each run of a life whose longest step has so many."""
    each = [range(number, number + 1) for number in range(1, writes + 1)]
    return each if EVERY_CALL or stride == 1 else [FIRST, *sample(each, max(1, writes // stride - 1), of)]


def bring(harness: Harness, step: LoadBalancerModel | None) -> None:
    """Bring about this step, with a new process after each that ends."""
    while True:
        try:
            return Process(harness).bring(step)
        except Died:
            harness.wire.start_again()


def after_writes(harness: Harness, goes_wrong: Callable[[int, int], None]) -> None:
    """Let this go wrong at writes of each step (see `points`). The account must be as if it had not."""
    steps, before = life(harness), harness.snapshot()
    undisturbed = []
    for step in steps:
        harness.wire.writes.clear()
        bring(harness, step)
        undisturbed.append((step, harness.snapshot(), len(harness.wire.writes)))
    assert harness.snapshot() == before, "a deletion leaves nothing"
    assert all(writes for _, _, writes in undisturbed), "every step writes"

    for numbers in points(max(writes for _, _, writes in undisturbed), harness.stride, goes_wrong.__name__):
        for step, expected, writes in undisturbed:
            due = sum(number <= writes for number in numbers)
            if not due and step is not steps[0] and step is not None:
                continue  # Nothing would happen to it, and the others do not need it.
            goes_wrong(numbers[0], len(numbers))
            bring(harness, step)
            happened, where = harness.wire.happened, f"write {numbers[0]} to {numbers[-1]} of {writes}"
            # What went wrong may make further writes necessary, which go wrong, too.
            assert due <= happened <= (due and len(numbers)), f"{where}: {happened} times, {harness.wire.writes}"
            assert not differences(harness.snapshot(), expected), f"after {where}"
    harness.wire.peace()


@patient
def test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes(harness: Harness) -> None:
    after_writes(harness, harness.wire.die)


@patient
def test_whichever_answer_is_lost_the_outcome_is_the_same(harness: Harness) -> None:
    after_writes(harness, harness.wire.lose_answer)
