"""What Alibaba Cloud does to those who call it: the stand-in's own faults, and lists that lag, by the proxy."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from random import Random

import orjson

from cloud_controller.clouds.alicloud.requests import is_read
from local.alicloud.keys import KEY
from local.standin.actions import Call
from local.standin.faults import Fault as StandInFault
from local.standin.refusals import Refusal
from tests.crash.alicloud_environment import AliCloudEnvironment
from tests.crash.daemon import Daemon, until
from tests.crash.proxy import as_it_is
from tests.crash.under_fault import Fault

Decide = Callable[[Call], StandInFault | None]

_LEAST = 3
"""Calls that a fault must have met: with fewer, the work was done without it."""


def meets(environment: AliCloudEnvironment, decide: Decide) -> Fault[Daemon]:
    """Calls meet what is decided until the work is done."""
    met = 0

    def counted(call: Call) -> StandInFault | None:
        nonlocal met
        fault = decide(call)
        met += fault is not None
        return fault

    def fault(_: Daemon) -> Generator[None, None, None]:
        environment.decide = counted
        try:
            yield
            yield
        finally:
            environment.decide = lambda _: None
            environment.cloud.faults.clear()
        assert met >= _LEAST, f"hardly any call met it: {met}"

    return fault


def throttled(environment: AliCloudEnvironment) -> Fault[Daemon]:
    """Half of the calls are one too many."""
    chance, error = Random(1), Refusal(400, "Throttling.User", "Request was denied due to user flow control.")
    return meets(environment, lambda call: StandInFault(call.operation, error) if chance.random() < 0.5 else None)


def failing(environment: AliCloudEnvironment) -> Fault[Daemon]:
    """Three of ten calls fail: refused by an error of the cloud's own, or done without an answer."""
    chance = Random(2)
    faults: Mapping[str, Callable[[str], StandInFault]] = {
        "error": lambda of: StandInFault(of, Refusal(500, "InternalError", "refused by the test")),
        "unavailable": lambda of: StandInFault(of, Refusal(503, "ServiceUnavailable", "refused by the test")),
        "no answer": lambda of: StandInFault(of, loses_answer=True),
    }

    def decide(call: Call) -> StandInFault | None:
        return chance.choice([*faults.values()])(call.operation) if chance.random() < 0.3 else None

    return meets(environment, decide)


def slow(environment: AliCloudEnvironment, seconds: float) -> Fault[Daemon]:
    """Each call takes this long."""
    return meets(environment, lambda call: StandInFault(call.operation, delay=seconds))


def busy(environment: AliCloudEnvironment, seconds: float) -> Fault[Daemon]:
    """Load balancers refuse changes for so long after each; of NLB's actions, the first job of each fails."""
    failed: set[str] = set()

    def decide(call: Call) -> StandInFault | None:
        product, _, action = call.operation.partition(".")
        if product != "nlb" or is_read(action) or action in failed:
            return None
        failed.add(action)
        return StandInFault(call.operation, fails_job="InternalError")

    def fault(daemon: Daemon) -> Generator[None, None, None]:
        world = environment.cloud.world
        before = world.job_seconds
        world.clb_settles = world.job_seconds = seconds
        try:
            yield from meets(environment, decide)(daemon)
        finally:
            world.clb_settles, world.job_seconds = 0.0, before

    return fault


# ---------------------------------------------------------------------------------------------------------------- lag

_LISTS = {
    "ecs DescribeInstances": ("Instances.Instance", "InstanceId"),
    "ecs DescribeSecurityGroups": ("SecurityGroups.SecurityGroup", "SecurityGroupId"),
    "nlb ListLoadBalancers": ("LoadBalancers", "LoadBalancerId"),
    "nlb ListServerGroups": ("ServerGroups", "ServerGroupId"),
    "slb DescribeLoadBalancers": ("LoadBalancers.LoadBalancer", "LoadBalancerId"),
    "slb ListTagResources": ("TagResources.TagResource", "ResourceId"),
    "vpc DescribeRouteEntryList": ("RouteEntrys.RouteEntry", "RouteEntryId"),
}
"""Where the objects are in the answer, and which of their fields is the ID."""


def lists_lag(environment: AliCloudEnvironment, seconds: float) -> Fault[Daemon]:
    """What is made is not listed until so long after its list was asked for. Reads of single objects show it."""
    first_asked: dict[str, float] = {}

    def mend(asked: str, answer: bytes) -> bytes:
        content = orjson.loads(answer)
        if asked not in _LISTS or "Code" in content:
            return answer
        path, key = _LISTS[asked]
        *parents, last = path.split(".")
        parent = content
        for name in parents:
            parent = parent[name]
        now = time.monotonic()
        parent[last] = [each for each in parent[last] if now >= first_asked.setdefault(each[key], now) + seconds]
        return orjson.dumps(content)

    def fault(daemon: Daemon) -> Generator[None, None, None]:
        with environment.cloud.changing() as account:
            there = {each for objects in account.store.snapshot().values() for each in objects}
        first_asked.update(dict.fromkeys(there, -seconds))
        daemon.cloud.mending = mend
        try:
            yield
            yield
            until(lambda: len(first_asked) >= len(there) + _LEAST, "lists lagged")
        finally:
            daemon.cloud.mending = as_it_is

    return fault


# --------------------------------------------------------------------------------------------------------- credentials


def expiry(environment: AliCloudEnvironment) -> Fault[Daemon]:
    """The key of the role expires, and for a while the metadata service has no other."""

    def fault(daemon: Daemon) -> Generator[None, None, None]:
        metadata = environment.cloud.metadata
        machine, metadata.machine = metadata.machine, "none"
        with environment.cloud.changing() as account:
            lent = [each for each, key in account.store.snapshot()[KEY].items() if key["token"] is not None]
            for key in lent:
                account.fill(KEY, key, expires=account.clock())
        assert lent, "the daemon has asked for no key"
        yield
        refused = "/latest/meta-data/ram/security-credentials/", 404
        until(lambda: refused in asked(daemon), "it has asked for another key")
        metadata.machine = machine
        yield

    return fault


def asked(daemon: Daemon) -> set[tuple[str, int]]:
    """What was asked for, and the statuses of the answers."""
    return {(call.path, call.status) for call in daemon.recorder.calls()}
