"""Nodes in memory, for the loops that write them: an API server and an informer that are never apart."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT
from cloud_controller.kube import LEASES, NODES, EventType, NotFoundError, Object, PatchType, Resource, name
from cloud_controller.metrics import Metrics
from tests.cloud_controller.conftest import FakeCloud
from tests.cloud_controller.guard import guard

TAINT = {"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}
CIDR = "10.1.0.0/16"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Cluster:
    """`context` is what controllers get; `writes` are theirs, `deleted` the nodes that they deleted."""

    cloud: FakeCloud
    clock: Clock = field(default_factory=Clock)
    stored: dict[str, Object] = field(default_factory=dict)
    handlers: list[Any] = field(default_factory=list)
    deletion_handlers: list[Any] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    deleted: list[Object] = field(default_factory=list)
    version: int = 0
    lease: Object | None = None

    def __post_init__(self) -> None:
        self.machines = InstanceSnapshot(self.cloud, 5.0, clock=self.clock)

    @property
    def context(self) -> ControllerContext:
        this: Any = self
        return ControllerContext(this, this.cloud, this, self.metrics, self.machines, guard(this), workers=2)

    # -- an informer

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def add_deletion_handler(self, handler: Any) -> None:
        self.deletion_handlers.append(handler)

    def items(self) -> list[Object]:
        return [*self.stored.values()]

    def put(self, node: Object) -> None:
        old = self.stored.get(name(node))
        self.version += 1
        node["metadata"]["resourceVersion"] = str(self.version)
        self.stored[name(node)] = node
        for handler in self.handlers:
            handler(EventType.MODIFIED if old else EventType.ADDED, old, node)

    # -- an API server

    def get(self, resource: Resource, key: str, namespace: str | None = None) -> Object:
        if resource == LEASES:
            if self.lease is None:
                raise NotFoundError(404, "NotFound", f"{namespace}/{key}")
            return self.lease
        assert resource == NODES
        if key not in self.stored:
            raise NotFoundError(404, "NotFound", key)
        return self.stored[key]

    def patch(self, resource: Resource, key: str, patch: Object, *_: Any, **options: Any) -> Object:
        if resource != NODES:
            self.events.append((key, "told again", ""))
            return patch
        self.writes.append(f"{key} {options.get('subresource', 'object')}")
        node = copy.deepcopy(self.get(resource, key))
        _merge(node, copy.deepcopy(patch), options["type"])
        self.put(node)
        return node

    def delete(self, _: Resource, key: str, *, uid: str) -> None:
        assert self.stored[key]["metadata"]["uid"] == uid
        self.writes.append(f"{key} delete")
        self.deleted.append(self.stored[key])
        self.remove(key)

    def replace(self, _: Resource, lease: Object) -> Object:
        self.lease = lease
        return lease

    def create(self, _: Resource, event: Object) -> Object:
        self.events.append((event["involvedObject"]["name"], event["reason"], event["message"]))
        return event

    # -- what tests do

    def remove(self, key: str) -> None:
        """Somebody deletes the node."""
        if old := self.stored.pop(key, None):
            for handler in self.deletion_handlers:
                handler(old)
            for handler in self.handlers:
                handler(EventType.DELETED, old, None)

    def register(self, key: str, pod_cidr: str | None = None, *, ready: str = "True", uid: str = "") -> None:
        """What a kubelet of an external cloud does."""
        self.put(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": key, "uid": uid or f"uid-{key}", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"taints": [TAINT], **({"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {})},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }
        )

    def told(self, controller: LoopController) -> list[tuple[str, str, str]]:
        """Every event so far."""
        assert controller.events.close(60)
        return self.events

    def triggered(self, controller: LoopController) -> frozenset[str]:
        """The keys of the next pass."""
        keys = frozenset(controller._keys)
        controller._keys.clear()
        return keys


def _merge(target: Object, patch: Object, how: PatchType) -> None:
    for key, value in patch.items():
        if key == "conditions" and how is PatchType.STRATEGIC:
            new = {each["type"] for each in value}
            target[key] = [each for each in target.get(key, []) if each["type"] not in new] + value
        elif isinstance(value, dict):
            _merge(target.setdefault(key, {}), value, how)
        else:
            target[key] = value
