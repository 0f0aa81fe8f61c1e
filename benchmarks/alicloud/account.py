"""The simulated Alibaba Cloud of a benchmark: a network over two zones, its machines, and a count of all calls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.counts import Counted, Tally
from cloud_controller.clouds.alicloud.config import AccessKey, Config, render
from cloud_controller.clouds.alicloud.names import VERSIONS
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.alicloud.account import ACCESS_KEY, REGION, SECRET
from local.alicloud.cloud import AliCloud
from local.http_messages import Answer, Request
from local.standin.actions import Call
from local.standin.faults import Fault
from local.standin.standin import Received
from local.standin.store import Object

CLUSTER_ID = "c-benchmark"
VPC = "vpc-benchmark"
ZONES = (f"{REGION}-h", f"{REGION}-k")
_NETWORKS = ("192.168.0.0/18", "192.168.64.0/18")
_ENOUGH = 10_000
"""In place of the quotas that an account asks the cloud to raise."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance, as a kubelet on it would register it."""

    id: str
    name: str
    address: str

    @property
    def provider_id(self) -> str:
        """REGION.ID."""
        return f"{REGION}.{self.id}"


class CountingAliCloud(AliCloud):
    """The stand-in with a tally of its calls, refused ones apart. Every job is done when it is first asked for, as in
    the peer's recordings."""

    def __init__(self, latency: float = 0.0) -> None:
        """`latency`: seconds before each call is carried out."""
        super().__init__(job_seconds=0.0)
        self._tally = Tally()
        self.faults.add(Fault("*", delay=latency, count=None))

    def receive(self, request: Request) -> Received[Any] | Answer:
        """See `StandIn.receive`."""
        self._tally.begin()
        received = super().receive(request)
        if isinstance(received, Answer):
            self._tally.end("unreadable", _failure(received))
        return received

    def carry_out(self, request: Request, call: Call, fault: Fault | None) -> Answer:
        """See `StandIn.carry_out`."""
        answer = super().carry_out(request, call, fault)
        self._tally.end(call.operation, _failure(answer))
        return answer

    def counted(self) -> Counted:
        """All calls so far."""
        return self._tally.counted()


class Account:
    """One account, changed past its API: that is not counted."""

    def __init__(self, latency: float = 0.0) -> None:
        self.cloud = CountingAliCloud(latency)
        with self.cloud.changing() as world:
            world.quotas.custom_routes = world.quotas.load_balancers = _ENOUGH
            machines.add_vpc(world, VPC)
            self.vswitches = [
                machines.add_vswitch(world, VPC, zone, cidr) for zone, cidr in zip(ZONES, _NETWORKS, strict=True)
            ]

    def add_machines(self, count: int) -> list[Machine]:
        """Running instances, spread over the zones, with the cluster's tag."""
        tags = {CLUSTER_TAG: CLUSTER_ID}
        with self.cloud.changing() as world:
            first = len(world.store.all(machines.INSTANCE))
            added = [
                machines.add_instance(world, self.vswitches[number % len(ZONES)], name=f"node-{number:05}", tags=tags)
                for number in range(first, first + count)
            ]
            found = {each["instance"]: each["addresses"][0] for each in world.store.all(machines.ENI)}
            names = {each["id"]: each["name"] for each in world.store.all(machines.INSTANCE)}
        return [Machine(each, names[each], found[each]) for each in added]

    def objects(self, kind: str) -> list[Object]:
        """Everything of a kind, such as `machines.ROUTE`."""
        with self.cloud.changing() as world:
            return world.store.all(kind)

    @contextmanager
    def served(self) -> Iterator[str]:
        """The text of a cloud config for the account, while it is served."""
        with self.cloud.served() as url:
            yield render(
                Config(
                    CLUSTER_ID,
                    REGION,
                    VPC,
                    access_key=AccessKey(ACCESS_KEY, SECRET),
                    endpoints=dict.fromkeys(VERSIONS, url),
                )
            )


def _failure(answer: Answer) -> str | None:
    return None if answer.status < 400 else str(json.loads(answer.body)["Code"])
