"""What this controller leaves in Octavia and Neutron after each phase of a recorded scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from cloud_controller.cloud import CloudError, InvalidConfiguration, Postponed
from cloud_controller.controllers.service.controller import POLL
from cloud_controller.kube import key
from local.openstack.peer import Peer
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice, service
from tests.compatibility.openstack_account import Common, PeersProject
from tests.compatibility.openstack_by_hand import BY_HAND, put_node
from tests.compatibility.openstack_left import NODES, left
from tests.compatibility.openstack_recorded import FAILURES, named, told

Json = dict[str, Any]

_PROJECTS = 3
"""Scenarios that run side by side, so that one uses the services while others wait for Octavia."""
_ROUNDS = 12
_LAST_WORDS = ("EnsuredLoadBalancer", "UpdatedLoadBalancer", "DeletedLoadBalancer", *FAILURES)
_RESTARTED_WITH = {"conf-changed": "changed", "security-groups-off": "base"}


def of_ours(peer: Peer, scenarios: Iterable[Json]) -> dict[str, Json]:
    """What this controller leaves after each phase of these recorded scenarios, by the phase's name."""
    common = Common(peer)
    free: SimpleQueue[PeersProject] = SimpleQueue()
    for _ in range(_PROJECTS):
        free.put(PeersProject(common))

    def one(recorded: Json) -> dict[str, Json]:
        project = free.get()
        found = named(recorded, _of_ours(project, recorded))
        project.empty()
        free.put(project)
        return found

    with ThreadPoolExecutor(_PROJECTS) as pool:
        return {name: state for found in pool.map(one, scenarios) for name, state in found.items()}


def _of_ours(project: PeersProject, recorded: Json) -> Iterator[Json]:
    """What this controller leaves after each phase. A cloud config that it refuses is a failed creation."""
    project.conf = recorded["conf"]
    try:
        driven = _Driven(project, recorded)
    except InvalidConfiguration:
        yield {**left(project.world()), **told(True, [FAILURES[0]], {}, ())}
        return
    for phase in recorded["phases"]:
        driven.take(phase)
        yield driven.state(phase)


class _Driven:
    """A cluster with the recorded Services, and a process that serves them."""

    def __init__(self, project: PeersProject, recorded: Json) -> None:
        self._project, self._cluster, self._scenario = project, Cluster(), recorded["scenario"].rpartition("/")[2]
        for node in ("node0", "node1", "node2"):
            put_node(project, self._cluster, node, env="prod" if node == "node0" else "dev")
        self._made = _prepared(project, self._scenario, recorded.get("before", {}))
        self._left: Json | None = None
        self._running = Running(project, self._cluster)

    def take(self, phase: Json) -> None:
        """Let the phase happen, and the controller do what it then does."""
        title = phase["title"]
        self._cluster.events.clear()
        self._running.calls.clear()
        for name, given in phase.get("services", {}).items():
            self._put_service(name, given)
        by_hand = BY_HAND.get(title)
        if title == "restart":
            self._project.conf = _RESTARTED_WITH.get(self._scenario, self._project.conf)
            self._running = Running(self._project, self._cluster)
        elif by_hand is not None:
            by_hand(self._project, self._cluster)
            self._running.resync()
        self._running.take_nodes()
        self._settle()
        if self._sent or by_hand is not None or self._left is None:
            self._left = left(self._project.world())

    def state(self, phase: Json) -> Json:
        """What is left, and what Kubernetes shows."""
        services, reasons = self._cluster.objects["services"].values(), self._cluster.reasons
        status = {
            each["metadata"]["name"]: (each["status"].get("loadBalancer") or {}).get("ingress") or []
            for each in services
        }
        last = next((each for each in reversed(reasons) if each in _LAST_WORDS), "")
        found = {**(self._left or {}), **told(last in FAILURES, reasons, status, ())}
        if phase["title"] == "restart":
            found["writes"] = sorted(_short(each) for each in self._running.calls.writes if "auth/tokens" not in each)
        return found

    def _put_service(self, name: str, given: Json | None) -> None:
        if given is None:
            if f"default/{name}" in self._cluster.objects["services"]:
                self._cluster.delete_service(f"default/{name}")
            return
        annotations = {each: self._with_id(value) for each, value in given["annotations"].items()}
        self._cluster.put(service(annotations, name=name, **{"type": "LoadBalancer", **given["spec"]}))
        # Only nodes with pods are members with `externalTrafficPolicy: Local`; the Go controller takes all nodes.
        pods = endpoint_slice(*(endpoint("10.244.0.1", node) for node in NODES), of=name, name=f"{name}-1")
        pods["ports"] = [{"name": "", "protocol": each, "port": 8080} for each in ("TCP", "UDP", "SCTP")]
        old = self._cluster.objects["endpointslices"].get(key(pods))
        self._cluster.put_slice(pods)
        self._running.take_slice(pods, old)

    def _with_id(self, value: str) -> str:
        """The annotation's value with the IDs of this project."""
        if value.startswith("#"):
            return self._made or str(self._project.first("loadbalancers")["id"])
        return self._project.ids.get(value, value)

    def _settle(self) -> None:
        """Handle everything until nothing happens any more."""
        for _ in range(_ROUNDS):
            before, sent = self._happened, self._sent
            for each in sorted({*self._cluster.objects["services"], *self._running.controller._cache.keys()}):
                self._handle(each)
            if self._sent != sent:
                self._project.settle()
            self._handle(POLL)
            if self._happened == before:
                break

    def _handle(self, key: str) -> None:
        # A worker would try again.
        with suppress(CloudError, Postponed):
            self._running.handle(key)

    @property
    def _sent(self) -> int:
        return sum(self._running.calls.writes.values())

    @property
    def _happened(self) -> tuple[int, int, int]:
        return self._sent, self._cluster.writes, len({*self._cluster.events})


def _prepared(project: PeersProject, scenario: str, before: Json) -> str:
    """Make what the user of the recorded Services had made. The ID that an annotation names, if any."""
    if scenario == "load-balancer-id":
        return project.make_balancer()
    if scenario == "port-id":
        return project.make_port()
    if scenario == "lb-error-at-creation":
        project.breaks = True
    elif scenario == "quota-lb":
        project.set_quota("load-balancer", "load_balancer", 0)
    elif scenario == "quota-floating-ip":
        project.set_quota("network", "floatingip", 0)
    elif scenario.startswith("security-groups"):
        project.add_node_ports()
    for each in before.get("floatingips", {}).values():
        project.make_floating_ip(floating_ip_address=each["floating_ip_address"])
    return ""


def _short(operation: str) -> str:
    """`PUT pools/ID` of `PUT load-balancer lbaas/pools/ID`."""
    method, _, path = operation.split()
    return f"{method} {path.removeprefix('lbaas/')}"
