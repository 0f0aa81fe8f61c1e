"""The controllers of nodes and routes of one process on the stand-in."""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.alicloud.cloud import AliCloud
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.node import NodeController
from cloud_controller.controllers.node_lifecycle import NodeLifecycleController
from cloud_controller.controllers.route import RouteController, RouteOptions
from local.alicloud import machines
from tests.cloud_controller.clouds.alicloud.account import Account
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.controllers.nodes_in_memory import Cluster
from tests.fake_kubernetes import FakeKubernetes

PODS = "10.0.0.0/8"


class Daemon:
    """The controllers of nodes and routes of one process."""

    def __init__(self, account: Account, api: FakeKubernetes | None = None, **config: Any) -> None:
        self.account = account
        self.cloud: AliCloud = account.cloud(**config)
        self.cluster = Cluster(FakeCloud(), api=api or FakeKubernetes())
        self.cluster.cloud = self.cloud  # type: ignore[assignment]
        self.cluster.machines = InstanceSnapshot(self.cloud.instances, 5.0, clock=self.cluster.clock)
        self.cloud._cache.clock = self.cluster.clock
        self.node = NodeController(self.cluster.context)
        self.lifecycle = NodeLifecycleController(self.cluster.context)
        self.route = RouteController(self.cluster.context, RouteOptions((PODS,)))

    def add_node(self, number: int, *, identified: bool = True, **more: Any) -> str:
        """A machine whose kubelet registers its node, with or without provider ID; returns the machine."""
        machine = self.account.machine(f"node-{number}", **more)
        self.cluster.register(f"node-{number}", f"10.1.{number}.0/24")
        if identified:
            self.cluster.stored[f"node-{number}"]["spec"]["providerID"] = f"cn-hangzhou.{machine}"
        return machine

    def work(self) -> dict[str, int]:
        """One pass of each, and what follows from their own writes; returns the calls."""
        self.cluster.clock.now += 6
        self.account.calls()
        for controller in (self.node, self.lifecycle, self.route):
            assert [*controller.reconcile(None)] == []
            assert [*controller.reconcile(self.cluster.triggered(controller))] == []
        return self.account.calls()

    def routes(self) -> set[tuple[str, str]]:
        return {(each["cidr"], each["hop"]) for each in self.account.objects(machines.ROUTE)}
