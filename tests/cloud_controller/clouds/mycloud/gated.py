"""A service controller that serves readiness gates, step by step, on mycloud's API and an API server in memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.mycloud.provider_ids import provider_id
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.queue import Cause
from cloud_controller.controllers.service.controller import (
    NODES_CHANGED,
    POLL,
    RESYNC,
    ServiceController,
    ServiceOptions,
)
from cloud_controller.events import EventRecorder
from cloud_controller.kube import ENDPOINT_SLICES, NODES, PODS, SERVICES, EventType, Object
from cloud_controller.load_balancers.readiness_gates import ReadinessGates, is_held
from cloud_controller.metrics import Metrics
from tests.cloud_controller.clouds.mycloud.services import members, named, only
from tests.cloud_controller.guard import guard
from tests.cloud_controller.load_balancing import port, service
from tests.fake_kubernetes import FakeKubernetes

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

WEB = "default/web"
GATES = ReadinessGates(service_prefix="ready.example.com/")
GATE = GATES.condition
HELD = partial(is_held, gates=GATES)


def pod(name: str, address: str, *gates: str, app: str = "web", **conditions: str) -> Object:
    """A pod on worker-0 whose containers are ready."""
    found = {"ContainersReady": "True", "Ready": "False" if gates else "True", **conditions}
    return {
        "metadata": {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": {"app": app}},
        "spec": {"nodeName": "worker-0", "readinessGates": [{"conditionType": each} for each in gates]},
        "status": {
            "phase": "Running",
            "podIPs": [{"ip": address}],
            "conditions": [{"type": kind, "status": status} for kind, status in found.items()],
        },
    }


class Gated:
    """A service controller in a new process, which serves gates, on an API server in memory."""

    def __init__(self, site: MyCloudSite, kube: FakeKubernetes | None = None, gates: ReadinessGates = GATES) -> None:
        self.site = site
        self.kube = kube or FakeKubernetes()
        if kube is None:
            machine = site.machine("worker-0")
            addresses = [{"type": "InternalIP", "address": machine["private_ips"][0]}]
            spec = {"providerID": provider_id(machine), "podCIDRs": ["10.244.0.0/24"]}
            node = {"metadata": {"name": "worker-0"}, "spec": spec, "status": {"addresses": addresses}}
            self.kube.put(NODES, node)
            route = {"destination_cidr": "10.244.0.0/24", "next_hop_machine_id": machine["id"]}
            table = f"route_tables/{site.network['route_table_id']}/routes:batch_create"
            assert site.client.post(table, {"routes": [route]})["results"][0]["error"] is None
        self.cloud = site.new_cloud()
        self.health: dict[tuple[str, str, int], bool] = {}
        self.asked = 0
        self._recorder = EventRecorder(self.kube, "test")
        self.error: CloudError | None = None
        self.cloud.load_balancers.health = self._health  # type: ignore[method-assign,assignment]
        kinds = (SERVICES, NODES, ENDPOINT_SLICES)
        services, nodes, slices = (self.kube.informer(kind) for kind in kinds)
        self.pods = pods = self.kube.informer(PODS, HELD)
        self.controller = ServiceController(
            self.kube,
            self.cloud,
            services,
            nodes,
            slices,
            self._recorder,
            Metrics(),
            ServiceOptions(gates=gates),
            guard(self.kube),
            InstanceSnapshot(self.cloud.instances),
            None,
            pods,
        )
        # What an informer tells of the objects that there are.
        for kind, informer in zip((*kinds, PODS), (services, nodes, slices, pods), strict=True):
            for each in [*self.kube.objects(kind).values()]:
                informer._take(EventType.ADDED, None, each)
        assert self.controller._gates is not None
        self.gates = self.controller._gates
        self.pauses: dict[str, float] = {}
        """The seconds until each key that waits is handled again."""
        queue = self.gates.queue
        add_after = queue.add_after

        def noted(key: str, seconds: float, cause: Cause = Cause.ROUTINE) -> None:
            self.pauses[key] = seconds
            add_after(key, seconds, cause)

        queue.add_after = noted  # type: ignore[method-assign]
        self.controller.handle(RESYNC)

    def _health(self, _: str) -> dict[tuple[str, str, int], bool]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.health

    def serve(self, **spec: Any) -> Gated:
        """Create Service `web`, whose members are its pods, and its load balancer."""
        asked = service(named(backend_type="pod-ip"), port(8080), selector={"app": "web"}, **spec)
        self.kube.put(SERVICES, asked)
        return self.settle()

    def with_member(self, *, healthy: bool | None = None) -> Gated:
        """Serve, with pod `a` as a member that only waits for its gate; the cloud says nothing yet of its health, or
        this."""
        self.serve()
        self.add(pod("a", "10.244.0.5", GATE))
        self.settle()
        self.health = {} if healthy is None else {("tcp-8080", "10.244.0.5", 8000): healthy}
        return self

    def settle(self) -> Gated:
        """Handle what there is, while the cloud works."""
        for _ in range(3):
            self.controller.handle(NODES_CHANGED)
            for each in [*self.kube.objects(SERVICES)]:
                self.controller.handle(each)
            self.site.settle()
            self.controller.handle(POLL)
        return self

    def add(self, *pods: Object, ready: bool = False) -> None:
        """Add pods, and the endpoints that the endpoint slice controller makes for them."""
        self.kube.put(PODS, *pods)
        endpoints = [
            {
                "addresses": [each["status"]["podIPs"][0]["ip"]],
                "conditions": {"ready": ready, "terminating": False},
                "nodeName": "worker-0",
                "targetRef": {"kind": "Pod", "namespace": "default", "name": name, "uid": each["metadata"]["uid"]},
            }
            for key, each in self.kube.objects(PODS).items()
            if (name := key.partition("/")[2])
        ]
        metadata = {"namespace": "default", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}}
        ports = [{"name": "", "protocol": "TCP", "port": 8000}]
        self.kube.put(
            ENDPOINT_SLICES, {"metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": endpoints}
        )

    def ask_again(self, *services: str) -> None:
        """Handle these Services' gates (by default Service `web`'s), as if their pauses were over."""
        for each in services or (WEB,):
            self.gates.queue.add(each, Cause.OBJECT)
        self.decide()

    def decide(self) -> None:
        """Handle every key of the gates' queue that is ready."""
        for each in sorted(self.gates.queue.get_batch()):
            self.pauses.pop(each, None)
            try:
                self.gates.handle(each)
            finally:
                self.gates.queue.done(each)

    def events(self) -> list[tuple[str, str, str]]:
        """The events so far; no more can be reported."""
        assert self._recorder.close(60)
        return self.kube.events

    def members(self) -> set[str]:
        return members(only(self.site.load_balancers()))

    def condition(self, name: str, type: str = GATE) -> dict[str, Any] | None:
        found = self.kube.objects(PODS)[f"default/{name}"]["status"]["conditions"]
        return next((each for each in found if each["type"] == type), None)

    def is_open(self, name: str, type: str = GATE) -> bool:
        found = self.condition(name, type)
        return found is not None and found["status"] == "True"

    @property
    def pod_writes(self) -> list[str]:
        return [each for each in self.kube.writes if "pods/" in each]


def true(type: str) -> dict[str, str]:
    """A condition that is True."""
    return {"type": type, "status": "True"}
