"""What this controller leaves in the stand-in after each phase of a recorded scenario."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from cloud_controller.cloud import CloudError, Postponed
from cloud_controller.controllers.service.controller import POLL
from cloud_controller.kube import key
from local.alicloud.account import REGION
from tests.cloud_controller.cluster import Cluster
from tests.cloud_controller.load_balancing import Running, endpoint, endpoint_slice, service
from tests.compatibility.alicloud_account import NODES, PeersAccount, machine
from tests.compatibility.alicloud_recorded import state

Json = dict[str, Any]

_KEY = "default/svc"
_ROUNDS = 4
_DONE, _FAILED = "EnsuredLoadBalancer", "SyncLoadBalancerFailed"


def of_ours(recorded: Json) -> Iterator[Json]:
    """What this controller leaves after each phase."""
    driven = _Driven(recorded)
    for phase in recorded["phases"]:
        driven.take(phase)
        found = state(driven.account, driven.failed, driven.ingress)
        if phase["title"] == "restart":
            found["writes"] = sorted(each.replace(" ", ".") for each in driven.running.calls.writes)
        yield found


class _Driven:
    """A cluster with the recorded Service, and a process that serves it."""

    def __init__(self, recorded: Json) -> None:
        self.account, self.cluster = PeersAccount(recorded["scenario"]), Cluster()
        for node in ("node-1", "node-2", "node-3"):
            self._add_node(node)
        self.service = service(dict(recorded["annotations"]), name="svc", uid="a-uid", **recorded["spec"])
        self.cluster.put(self.service)
        self.running = Running(self.account, self.cluster)
        self._put_pods(recorded["pods"])

    def take(self, phase: Json) -> None:
        """Let the phase happen, and the controller do what it then does."""
        title = phase["title"]
        self.cluster.events.clear()
        self.running.calls.clear()
        if title == "deletion":
            self.cluster.delete_service(_KEY)
        elif title == "restart":
            self.running = Running(self.account, self.cluster)
        elif title == "node added":
            self._add_node("node-4")
        elif title == "node removed":
            del self.cluster.objects["nodes"]["node-4"]
        self._change(phase)
        self.running.take_nodes()
        self.account.outdate()
        self.running.resync()
        for _ in range(_ROUNDS):
            for each in (_KEY, POLL):
                # A worker would try again.
                with suppress(CloudError, Postponed):
                    self.running.handle(each)
            self.account.settle()

    @property
    def failed(self) -> bool:
        """Whether the last word of the phase is an error."""
        last = next((each for each in reversed(self.cluster.reasons) if each in (_DONE, _FAILED)), _DONE)
        return last == _FAILED

    @property
    def ingress(self) -> list[str]:
        """What the Service's status says."""
        found = self.cluster.objects["services"].get(_KEY) or {"status": {}}
        ingress = found["status"].get("loadBalancer", {}).get("ingress") or []
        return [each.get("hostname") or each["ip"] for each in ingress]

    def _change(self, phase: Json) -> None:
        if "by_hand" in phase:
            self.account.change_by_hand(phase["by_hand"])
        if "annotations" in phase or "spec" in phase:
            metadata = self.service["metadata"]
            metadata["annotations"] = _merged(metadata["annotations"], phase.get("annotations", {}))
            self.service["spec"] = _merged(self.service["spec"], phase.get("spec", {}))
            self.cluster.put(self.service)
        if "pods" in phase or "spec" in phase:
            self._put_pods(phase.get("pods", self._pods))
        for field, value in phase.get("node-3", {}).items():
            node = self.cluster.objects["nodes"]["node-3"]
            if field == "unschedulable":
                node["spec"][field] = value
            else:
                node["metadata"][field] = _merged(node["metadata"][field], value)

    def _add_node(self, name: str) -> None:
        address = f"192.168.0.1{name[-1]}"
        self.cluster.put_node(name, f"{REGION}.{machine(name)}", address, labels={"pool": NODES[name]})

    def _put_pods(self, pods: list[list[str]]) -> None:
        self._pods = pods
        ipv6 = "ipv6" in self.service["metadata"]["annotations"].values()
        given = endpoint_slice(*(endpoint(_address(pod, ipv6), node) for node, pod in pods), of="svc", name="svc-1")
        given["addressType"] = "IPv6" if ipv6 else "IPv4"
        given["ports"] = [
            {"name": each["name"], "protocol": each["protocol"], "port": each["targetPort"]}
            for each in self.service["spec"]["ports"]
        ]
        old = self.cluster.objects["endpointslices"].get(key(given))
        self.cluster.put_slice(given)
        self.running.take_slice(given, old)


def _address(pod: str, ipv6: bool) -> str:
    number = pod.rpartition("-")[2]
    return f"2408:4005::{number}" if ipv6 else f"192.168.1.{number}"


def _merged(old: Json, new: Json) -> Json:
    return {name: value for name, value in {**old, **new}.items() if value is not None}
