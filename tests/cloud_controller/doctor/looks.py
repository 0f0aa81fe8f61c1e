"""A look of `doctor` at a cluster in memory, and what makes a healthy one.

world = World()
world.node("a")
world.change("a", lambda node: node["metadata"]["labels"].clear())

(finding,) = world.findings(node_facts.LABELS)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from cloud_controller.cloud import Cloud, Instance, Route
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.doctor.findings import Check, Finding, Result, examine
from cloud_controller.doctor.seen import Daemon, Seen, Target
from cloud_controller.kube import EVENTS, NODES, Kube, Object
from cloud_controller.planning import PlanSettings
from tests.cloud_controller.conftest import FakeCloud
from tests.fake_kubernetes import FakeKubernetes

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD = "2026-01-01T00:00:00Z"
SETTINGS = PlanSettings(route=RouteOptions(("10.1.0.0/16",)))


def ago(**span: float) -> str:
    """The time that long before a look, as in an object."""
    return (NOW - timedelta(**span)).isoformat()


def node_of(machine: Instance, number: int = 0, *, created: str = OLD) -> Object:
    """The node of this machine as the controllers leave it, with its route."""
    facts = {"region": machine.region, "zone": machine.zone}
    labels = {
        **{f"topology.kubernetes.io/{fact}": value for fact, value in facts.items()},
        **{f"failure-domain.beta.kubernetes.io/{fact}": value for fact, value in facts.items()},
        "node.kubernetes.io/instance-type": machine.type,
        "beta.kubernetes.io/instance-type": machine.type,
    }
    annotations = {key: value for key, value in machine.additional_annotations.items() if value is not None}
    cidr = f"10.1.{number}.0/24"
    return {
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "uid": f"uid-{machine.name}",
            "creationTimestamp": created,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"providerID": machine.provider_id, "podCIDR": cidr, "podCIDRs": [cidr]},
        "status": {
            "addresses": [{"type": each.type, "address": each.address} for each in machine.addresses],
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"},
            ],
        },
    }


def event_about(obj: Object, reason: str, message: str, *, at: str = OLD) -> Object:
    """A Warning about the object."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "default")
    return {
        "metadata": {"name": f"{metadata['name']}.{reason}", "namespace": namespace},
        "involvedObject": {"uid": metadata["uid"], "name": metadata["name"]},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


@dataclass
class World:
    """A cluster in memory, and its cloud. `meanwhile`: what happens between the two looks of a plan."""

    cloud: Any = field(default_factory=FakeCloud)
    api: FakeKubernetes = field(default_factory=FakeKubernetes)
    controllers: tuple[str, ...] = ("node", "node-lifecycle", "route")
    settings: PlanSettings = SETTINGS
    meanwhile: Callable[[], object] = lambda: None
    pauses: int = 0

    def node(self, name: str, number: int = 0, *, created: str = OLD, **machine: Any) -> Object:
        """A machine of the fake cloud, its node and its route, all as they should be."""
        made = self.cloud.machine(name, **machine)
        node = node_of(made, number, created=created)
        self.cloud.table.append(Route(node["spec"]["podCIDR"], made.id))
        self.api.put(NODES, node)
        return node

    def change(self, node: str, change: Callable[[Object], object]) -> None:
        """Somebody changes a node."""
        self.api.change(NODES, node, change)

    def event(self, obj: Object, reason: str, message: str) -> None:
        """An event about the object."""
        self.api.put(EVENTS, event_about(obj, reason, message))

    def look(self) -> Seen:
        """A new look, now."""

        def pause(_: float) -> None:
            self.pauses += 1
            self.meanwhile()

        def daemon(_: Kube, __: Cloud | None, ___: Sequence[str] | None) -> Daemon:
            return Daemon(self.cloud.provider_name, self.controllers, self.settings)

        return Seen(lambda: cast("Kube", self.api), lambda: self.cloud, daemon, Target(), now=lambda: NOW, pause=pause)

    def findings(self, check: Check) -> list[Finding]:
        """What the check finds. Raises Unreadable."""
        return [*check.run(self.look())]

    def examined(self, check: Check) -> Result:
        """What the check finds, and what it cannot look at."""
        return examine([check], self.look())[0]


def uninitialised(node: Object) -> None:
    """As its kubelet registers the node."""
    node["spec"] = {
        "podCIDRs": node["spec"]["podCIDRs"],
        "taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule", "value": "true"}],
    }


def not_ready(node: Object) -> None:
    """As the node is once its kubelet is gone."""
    node["status"]["conditions"][0]["status"] = "Unknown"
