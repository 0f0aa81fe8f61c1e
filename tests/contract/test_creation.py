"""A load balancer is created once, whatever becomes of the answers."""

from __future__ import annotations

import itertools
from contextlib import suppress

from cloud_controller.cloud import Conflict, Unavailable
from cloud_controller.load_balancers.model import LoadBalancerState
from tests.contract.harness import Harness, differences, web
from tests.contract.process import Process
from tests.contract.wire import Died

PART = "load_balancers"


def test_a_created_load_balancer_is_the_desired_one_to_a_new_process(harness: Harness) -> None:
    nodes = [harness.node("one"), harness.node("two")]
    first = Process(harness)
    wanted = first.desired(web(harness, 8080, 8443), nodes)
    first.bring(wanted)

    second = Process(harness)
    found = second.only()
    harness.wire.writes.clear()
    second.bring(wanted)

    assert found.state is LoadBalancerState.READY
    assert found.ingress, "it has an address"
    assert {each.key for each in found.model.listeners} == {("TCP", 8080), ("TCP", 8443)}
    assert found.model.tags.items() >= wanted.tags.items()
    assert harness.wire.writes == [], "nothing is left to do"


def test_the_same_token_never_makes_a_second_load_balancer(harness: Harness) -> None:
    nodes = [harness.node("one")]
    first, second = Process(harness), Process(harness)
    wanted = first.desired(web(harness), nodes)

    made = first.create(wanted)
    before = harness.snapshot()
    for process in (first, second):
        # A cloud may refuse the repetition: then it is read.
        with suppress(Unavailable):
            again = process.create(wanted)
            assert (again.id, again.model) == (made.id, made.model)

    assert Process(harness).own() == [made.id]
    assert harness.snapshot() == before


def test_a_token_in_use_with_other_settings_never_makes_a_second_load_balancer(harness: Harness) -> None:
    nodes = [harness.node("one")]
    process = Process(harness)
    made = process.create(process.desired(web(harness), nodes))
    harness.settle()

    other = Process(harness)
    with suppress(Conflict, Unavailable):
        assert other.create(other.desired(web(harness, 8443), nodes)).id == made.id

    assert Process(harness).own() == [made.id]


def test_other_tokens_make_other_load_balancers(harness: Harness) -> None:
    nodes = [harness.node("one")]
    process = Process(harness)
    services = [web(harness, name=name) for name in ("web", "shop")]

    made = [process.create(process.desired(each, nodes), token=f"token-{n}") for n, each in enumerate(services)]

    assert {*Process(harness).own()} == {lb.id for lb in made}
    assert len({lb.id for lb in made}) == 2


def test_a_partial_creation_is_taken_over_by_the_next_process(harness: Harness) -> None:
    nodes = [harness.node("one")]
    wanted = Process(harness).desired(web(harness, 8080, 8443), nodes)
    Process(harness).bring(wanted)
    whole = harness.snapshot()
    Process(harness).bring(None)

    process = Process(harness)
    process.load_balancers.read()
    harness.wire.die(after_write=1)
    with suppress(Died):
        process.create(wanted)
    harness.wire.peace()
    Process(harness).bring(wanted)

    assert harness.snapshot() == whole


def test_a_partial_creation_that_nobody_wants_any_more_leaves_nothing(harness: Harness) -> None:
    nodes = [harness.node("one")]
    wanted = Process(harness).desired(web(harness), nodes)
    empty = harness.snapshot()

    for write in itertools.count(1, harness.stride):
        process = Process(harness)
        harness.wire.die(after_write=write)
        try:
            process.create(wanted)
        except Died:
            harness.wire.peace()
            Process(harness).bring(None)
            assert not differences(harness.snapshot(), empty), f"after write {write}"
        else:
            assert write > 1, "a creation takes writes"
            return
