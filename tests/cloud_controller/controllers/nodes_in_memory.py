"""Nodes in memory, for the loops that write them: an API server and an informer that are never apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import EVERYTHING, ControllerContext, LoopController
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT
from cloud_controller.kube import NODES, Object
from cloud_controller.metrics import Metrics
from tests.clock import Clock
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.guard import guard
from tests.fake_kubernetes import FakeKubernetes

TAINT = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
CIDR = "10.1.0.0/16"


@dataclass
class Cluster:
    """`context` is what controllers get."""

    cloud: FakeCloud
    clock: Clock = field(default_factory=lambda: Clock(1000.0))
    api: FakeKubernetes = field(default_factory=FakeKubernetes)
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.machines = InstanceSnapshot(self.cloud, 5.0, clock=self.clock)
        self.nodes = self.api.informer(NODES)

    @property
    def context(self) -> ControllerContext:
        return ControllerContext(
            self.api, self.cloud, self.nodes, self.metrics, self.machines, guard(self.api), workers=2
        )

    @property
    def stored(self) -> dict[str, Object]:
        """The nodes by name."""
        return self.api.objects(NODES)

    @property
    def writes(self) -> Sequence[str]:
        """See `FakeKubernetes.writes`."""
        return self.api.writes

    def items(self) -> list[Object]:
        """All nodes."""
        return self.nodes.items()

    def register(self, key: str, pod_cidr: str | None = None, *, ready: str = "True", uid: str = "") -> None:
        """What a kubelet of an external cloud does."""
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": key, "uid": uid or f"uid-{key}", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"taints": [TAINT], **({"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {})},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }
        self.api.put(NODES, node)

    def told(self, controller: LoopController) -> list[tuple[str, str, str]]:
        """Every event so far."""
        assert controller.events.close(60)
        return self.api.events

    def triggered(self, controller: LoopController) -> frozenset[str]:
        """The keys of the next pass."""
        keys = controller._queue.get_batch()
        for key in keys:
            controller._queue.done(key)
        return keys - {EVERYTHING}
