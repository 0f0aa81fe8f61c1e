"""The fence is asked right before every attempt at a write, and a write that it refuses is not sent."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from cloud_controller.fence import WriteRefused
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)
from tests.contract.harness import Harness, differences, web
from tests.contract.process import Process

PART = "load_balancers"


class Fence:
    """Lets this many requests of a write pass."""

    def __init__(self, open_for: int = 0) -> None:
        self.left = open_for
        self.asked = 0

    def __call__(self) -> None:
        self.asked += 1
        self.left -= 1
        if self.left < 0:
            raise WriteRefused("not now")


def test_no_operation_reaches_the_cloud_when_the_fence_refuses_it(harness: Harness) -> None:
    nodes = [harness.node("one"), harness.node("two")]
    process = Process(harness)
    lb = process.served(web(harness, 8080, 8443), nodes[:1])
    pool, listener = lb.model.pools[0], lb.model.listeners[0]
    wanted = process.desired(web(harness, 8080, 8443, annotations=harness.changed_annotations), nodes)
    changed = next(each for each in wanted.pools if each.name == pool.name)
    new = [each for each in changed.members if each.key not in {member.key for member in pool.members}]
    operations: list[Operation] = [
        UpdateLoadBalancer(lb.id, wanted),
        PutPool(lb.id, changed, new=False),
        RemoveMembers(lb.id, pool.name, pool.members[:1]),
        AddMembers(lb.id, pool.name, tuple(new)),
        PutListener(lb.id, replace(listener, port=9443)),
        DeleteListener(lb.id, listener.protocol, listener.port),
        DeleteLoadBalancer(lb.id),
    ]
    before = harness.snapshot()
    process.cloud.fence_writes(Fence())
    harness.wire.writes.clear()

    for operation in operations:
        with pytest.raises(WriteRefused):
            process.change(lb, operation)

    assert harness.wire.writes == []
    assert not differences(harness.snapshot(), before)


def test_no_creation_reaches_the_cloud_when_the_fence_refuses_it(harness: Harness) -> None:
    node = harness.node("one")
    before = harness.snapshot()
    process = Process(harness)
    wanted = process.desired(web(harness), [node])
    process.cloud.fence_writes(Fence())

    with pytest.raises(WriteRefused):
        process.load_balancers.perform(None, [CreateLoadBalancer(wanted, process.token())])

    assert harness.wire.writes == []
    assert not differences(harness.snapshot(), before)


def test_a_fence_that_closes_in_the_middle_of_a_change_lets_nothing_more_through(harness: Harness) -> None:
    node, first = harness.node("one"), Process(harness)
    steps = [first.desired(web(harness, 8080, 8443), [node])]
    first.bring(steps[0])
    if len(harness.wire.writes) == 1:  # This creation has no middle.
        steps.append(first.desired(web(harness, 8080, 9443), [node]))
        first.bring(steps[1])
    writes = len(harness.wire.writes)
    Process(harness).bring(None)

    for open_for in range(1, writes):
        process = Process(harness)
        process.cloud.fence_writes(Fence(open_for))
        harness.wire.writes.clear()
        with pytest.raises(WriteRefused):
            for step in steps:
                process.bring(step)
        assert len(harness.wire.writes) <= open_for
        Process(harness).bring(None)


def test_each_attempt_at_a_write_asks_the_fence_again(harness: Harness) -> None:
    process = Process(harness)
    lb = process.served(web(harness), [harness.node("one")])
    harness.wire.writes.clear()
    harness.wire.refuse(harness.throttled, retry_after=0.01, writes_only=True)

    def fence() -> None:
        if harness.wire.writes:
            raise WriteRefused("the first attempt was the last one")

    process.cloud.fence_writes(fence)

    with pytest.raises(WriteRefused):
        process.change(lb, DeleteLoadBalancer(lb.id))

    assert len(harness.wire.writes) == 1


def test_the_fence_is_asked_once_the_connection_to_the_cloud_stands(harness: Harness) -> None:
    """It closes while a write connects."""
    if not harness.over_the_network:
        return
    process = Process(harness)
    lb = process.served(web(harness), [harness.node("one")])
    before = harness.snapshot()
    fence, connect = Fence(open_for=1000), socket.socket.connect

    def connecting(self: socket.socket, address: tuple[str, int]) -> None:
        fence.left = 0
        connect(self, address)

    def connect_again() -> None:
        harness.disconnect()
        patch.setattr(socket.socket, "connect", connecting)

    process.cloud.fence_writes(fence)
    harness.wire.before_write = connect_again
    harness.wire.writes.clear()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(WriteRefused):
        process.change(lb, DeleteLoadBalancer(lb.id))

    assert harness.wire.writes == []
    assert not differences(harness.snapshot(), before)


def test_reads_do_not_ask_the_fence(harness: Harness) -> None:
    node = harness.node("one")
    Process(harness).served(web(harness), [node])
    process = Process(harness)
    fence = Fence()
    process.cloud.fence_writes(fence)

    process.cloud.check_access(["node", "service"])
    lb = process.only()
    process.load_balancers.read((), {lb.id})
    process.load_balancers.health(lb.id)
    process.cloud.instances.list()

    assert fence.asked == 0
