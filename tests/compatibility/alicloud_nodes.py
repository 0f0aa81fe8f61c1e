"""What the recorded Go controller, and this one, made of Node objects and of the route table, phase by phase."""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from cloud_controller.controllers.route import RouteController, RouteOptions
from cloud_controller.kube import NODES
from cloud_controller.load_balancers.model import CLUSTER_TAG
from local.alicloud import machines
from local.alicloud.account import REGION
from tests.cloud_controller.clouds.alicloud.account import CONFIG, Account
from tests.cloud_controller.clouds.alicloud.daemon import Daemon

Json = dict[str, Any]

PEER: dict[str, Json] = json.loads(Path(__file__).with_name("alicloud_nodes_peer.json").read_text())
"""Of each phase: the Nodes that were put (`before`), what became of Nodes, the routes, and the interfaces whose
source/destination check was turned off."""

_PODS = ("10.0.0.0/16",)
_ODD = ("node-6", "node-7", "node-8", "node-9", "node-10", "node-11", "node-12")
_CLUSTER = {CLUSTER_TAG: CONFIG.cluster_id}
_POOL = {**_CLUSTER, "ack.alibabacloud.com/nodepool-id": "np-1"}


def of_peer() -> dict[str, Json]:
    """What the Go controller made of them."""
    found: dict[str, Json] = {}
    off: dict[str, set[str]] = {}
    for name, phase in PEER.items():
        checks = off.setdefault(name.partition(": ")[0], {"eni-node5"})
        checks |= {*phase["checks off"]}
        nodes = {
            node: {**of, "addresses": _by_type(of["addresses"])} if "addresses" in of else of
            for node, of in phase.get("nodes", {}).items()
        }
        found[name] = _state(nodes, phase["routes"], checks, phase.get("writes", []))
    return found


def of_ours() -> dict[str, Json]:
    """What this controller makes of them."""
    return {name: state for scenario in _SCENARIOS for name, state in _played(scenario)}


def _state(nodes: Json, routes: Json, checks: Iterable[str], writes: Iterable[str]) -> Json:
    """`writes`: of a restart."""
    off = dict.fromkeys(sorted(checks), "off")
    return {"refused": False, **nodes, "routes": routes, "checks": off, "writes": sorted(writes)}


def _by_type(addresses: Iterable[str]) -> Json:
    found: Json = {}
    for each in addresses:
        kind, _, address = each.partition(" ")
        found.setdefault("first", kind)
        found.setdefault(kind, []).append(address)
    return found


class _Play:
    """The recorded machines, and the controllers of one process after the other."""

    def __init__(self, scenario: str) -> None:
        self.scenario = scenario
        self.account = Account()
        with self.account.standin.changing() as world:
            for number in range(1, 9):
                self._add_machine(world, number)
            machines.add_eip(world, address="203.0.113.44", instance="i-bp1ecs0004", kind="EcsInstance")
        self.daemon, self._off = Daemon(self.account), self._unchecked()
        self.restart()

    def _add_machine(self, world: Any, number: int) -> None:
        zone = f"vsw-{'hk'[number % 2]}"
        if world.store.get(machines.VSWITCH, zone) is None:
            machines.add_vswitch(world, "vpc-cluster", f"{REGION}-{zone[-1]}", "192.168.0.0/24", zone)
        machines.add_instance(
            world,
            zone,
            f"i-bp1ecs000{number}",
            name=f"node-{number}",
            type="ecs.g6.xlarge",
            address=f"192.168.0.1{number}",
            ipv6=["2408:4005::11"] if number == 1 else [],
            spot_strategy="SpotAsPriceGo" if number == 4 else "NoSpot",
            charge_type="PrePaid" if number == 5 else "PostPaid",
            public_address="203.0.113.55" if number == 5 else "",
            tags=_POOL if number == 4 else _CLUSTER,
        )
        if number == 5:
            self.change_interface(world, number, addresses=["192.168.0.15", "192.168.0.99"], source_check=False)

    def change_interface(self, world: Any, number: int, **changes: Any) -> None:
        (interface,) = (each["id"] for each in world.store.all(machines.ENI) if each["instance"][-1] == str(number))
        world.fill(machines.ENI, interface, **changes)

    def restart(self) -> None:
        """Another process."""
        self.daemon = Daemon(self.account, self.daemon.cluster.api)
        self.daemon.route = RouteController(self.daemon.cluster.context, RouteOptions(_PODS))
        self.account.calls()
        self._written = len(self.daemon.cluster.writes)

    def put(self, phase: str) -> None:
        """What the phase's kubelets registered."""
        for name, node in PEER[f"{self.scenario}: {phase}"]["before"].items():
            given = copy.deepcopy(node)
            given["metadata"] = {
                "name": name,
                "uid": f"uid-{name}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                **{field: given.pop(field) for field in ("labels", "annotations")},
            }
            self.daemon.cluster.api.put(NODES, given)

    def remove(self, *names: str) -> None:
        for name in names:
            self.daemon.cluster.api.remove(NODES, name)

    def change(self, name: str, change: Callable[[Json], object]) -> None:
        self.daemon.cluster.api.change(NODES, name, change)

    def work(self, minutes: int = 10) -> None:
        """What the process does of itself in that time."""
        controllers = [self.daemon.node, self.daemon.lifecycle]
        if self.scenario == "init-and-routes":
            controllers.append(self.daemon.route)
        for _ in range(minutes // 5):
            self.daemon.cluster.clock.now += 300
            for controller in controllers:
                deque(controller.reconcile(None), maxlen=0)
        for controller in controllers:
            deque(controller.reconcile(self.daemon.cluster.triggered(controller)), maxlen=0)

    def state(self, phase: str) -> Json:
        """What is there of what was recorded of this phase."""
        told = {name: self._node(name, of) for name, of in PEER[phase].get("nodes", {}).items()}
        routes = dict(self.daemon.routes())
        writes = self._writes() if phase.endswith(": restart") else ()
        self._off |= self._unchecked()
        return _state(told, routes, self._off, writes)

    def _writes(self) -> set[str]:
        calls = (name for name in self.account.calls() if ".Describe" not in name and ".Get" not in name)
        return {*calls, *self.daemon.cluster.writes[self._written :]}

    def _node(self, name: str, recorded: Json) -> Json:
        node = self.daemon.cluster.stored.get(name)
        if "there" in recorded:
            return {"there": node is not None}
        assert node is not None
        conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
        return {
            "provider ID": node["spec"].get("providerID"),
            "taints": [each["key"] for each in node["spec"].get("taints") or []],
            "labels": node["metadata"]["labels"],
            "addresses": _by_type(f"{each['type']} {each['address']}" for each in node["status"]["addresses"]),
            "NetworkUnavailable": conditions.get("NetworkUnavailable"),
        }

    def _unchecked(self) -> set[str]:
        off = (each for each in self.account.objects(machines.ENI) if not each["source_check"])
        return {f"eni-node{each['instance'][-1]}" for each in off}


def _played(scenario: str) -> Iterator[tuple[str, Json]]:
    play = _Play(scenario)
    for phase in PEER:
        if phase.startswith(f"{scenario}: "):
            title = phase.partition(": ")[2]
            _happen(play, title)
            play.work(0 if title == "label-change" else 10)
            yield phase, play.state(phase)


_SCENARIOS = tuple(dict.fromkeys(phase.partition(": ")[0] for phase in PEER))


def _happen(play: _Play, title: str) -> None:
    """What happens at the beginning of a phase."""
    if "before" in PEER[f"{play.scenario}: {title}"]:
        play.put(title)
    elif title == "odd-nodes-deleted":
        play.remove(*_ODD)
    elif title == "node-deleted":
        # Node-6 had a provider ID this time.
        play.put("node-6: no provider ID")
        play.change("node-6", lambda node: node["spec"].update(providerID=f"{REGION}.i-bp1ecs0006"))
        play.work()
        play.remove("node-6")
    elif title == "label-change":
        wrong = {"foreign": "1", "topology.kubernetes.io/zone": "wrong"}
        play.change("node-1", lambda node: node["metadata"]["labels"].update(wrong))
    elif title == "instance-changed":
        with play.account.standin.changing() as world:
            machines.set_instance(world, "i-bp1ecs0002", type="ecs.g7.2xlarge")
            play.change_interface(world, 1, addresses=["192.168.0.11", "192.168.0.211"])
    elif title == "node-deleted-after-restart":
        play.remove("node-5")
    elif title == "instance-gone-ready":
        play.account.release("i-bp1ecs0004")
    elif title == "instance-gone-unknown":
        unknown = [{"type": "Ready", "status": "Unknown"}]
        play.change("node-4", lambda node: node["status"].update(conditions=unknown))
    elif title == "route-drift":
        _change_routes(play)
    if title.startswith(("restart", "instance-")):
        play.restart()


def _change_routes(play: _Play) -> None:
    with play.account.standin.changing() as world:
        (route,) = (each for each in world.store.all(machines.ROUTE) if each["hop"] == "i-bp1ecs0001")
        world.store.remove(machines.ROUTE, route["id"])
        machines.add_instance(world, "vsw-k", "i-bp1ecs0077")
        for number, cidr in enumerate(("10.0.77.0/24", "172.30.0.0/24")):
            foreign = {**route, "id": f"rte-foreign-{number}", "cidr": cidr, "hop": "i-bp1ecs0077"}
            world.store.put(machines.ROUTE, foreign["id"], foreign)
