"""The Kubernetes side of the service controller's tests, in memory, and how its loop is driven by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cloud_controller.clouds.mycloud.annotations import CATALOGUE, INGRESS_NODE
from cloud_controller.clouds.mycloud.cloud import MyCloud
from cloud_controller.clouds.mycloud.config import Config
from cloud_controller.clouds.mycloud.instances import provider_id
from cloud_controller.controllers.service.controller import POLL, RESYNC, ServiceController, ServiceOptions
from cloud_controller.kube import LEASES, EventType, NotFoundError, Object, PatchType, Resource
from cloud_controller.metrics import Metrics
from tests.cloud_controller.guard import guard, lease_that_confirms

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

WEB = "default/web"
MAX_QPS = CATALOGUE.by_argument["listener_max_qps"].name
SCHEME = CATALOGUE.by_argument["scheme"].name


class Crash(BaseException):
    """The process died."""


class Cluster:
    """Services and nodes in memory, with what of the API server the controller uses; every write can be the last."""

    def __init__(self) -> None:
        kinds = ("services", "nodes", "endpointslices", "leases")
        self.objects: dict[str, dict[str, Object]] = {kind: {} for kind in kinds}
        self.events: list[tuple[str, str]] = []
        self.writes = 0
        self.after_write: Callable[[], None] = lambda: None

    # what the controller calls

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        try:
            return self.objects[resource.plural][f"{namespace}/{name}" if namespace else name]
        except KeyError:
            raise NotFoundError(404, "NotFound", f"{name} is gone") from None

    def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str, *, type: PatchType, subresource: str = ""
    ) -> Object:
        service = copy.deepcopy(self.get(resource, name, namespace))
        assert patch["metadata"]["uid"] == service["metadata"]["uid"]
        finalizers = service["metadata"].setdefault("finalizers", [])
        if subresource == "status":
            assert type is PatchType.MERGE
            service["status"]["loadBalancer"] = patch["status"]["loadBalancer"] or {}
        else:
            assert type is PatchType.STRATEGIC
            finalizers += [f for f in patch["metadata"].get("finalizers", []) if f not in finalizers]
            for gone in patch["metadata"].get("$deleteFromPrimitiveList/finalizers", []):
                finalizers.remove(gone)
        self.writes += 1
        if service["metadata"].get("deletionTimestamp") and not finalizers:
            del self.objects["services"][f"{namespace}/{name}"]
        else:
            self.objects["services"][f"{namespace}/{name}"] = service
        self.after_write()
        return service

    def replace(self, resource: Resource, obj: Object) -> Object:
        metadata = obj["metadata"]
        self.objects[resource.plural][f"{metadata['namespace']}/{metadata['name']}"] = obj
        return obj

    def normal(self, obj: Object, reason: str, message: str) -> None:
        assert obj["metadata"]["name"]
        self.events.append((reason, message))

    warning = normal

    # what the tests do

    def delete_service(self, key: str = WEB) -> None:
        metadata = self.objects["services"][key]["metadata"]
        if metadata.get("finalizers"):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            del self.objects["services"][key]

    def confirm_all(self, running: ServiceController) -> None:
        """An administrator confirms everything that the controller holds."""
        self.replace(LEASES, lease_that_confirms(running._safeguard))

    def service(self, key: str = WEB) -> Object:
        return self.objects["services"][key]

    def put(self, service: Object) -> None:
        metadata = service["metadata"]
        self.objects["services"][f"{metadata['namespace']}/{metadata['name']}"] = service

    def put_node(self, machine: dict[str, Any], *, ingress: bool = False, labels: dict[str, str] | None = None) -> None:
        self.objects["nodes"][machine["name"]] = {
            "metadata": {
                "name": machine["name"],
                "labels": labels or {},
                "annotations": {INGRESS_NODE: "true"} if ingress else {},
            },
            "spec": {"providerID": provider_id(machine)},
            "status": {"addresses": [{"type": "InternalIP", "address": machine["private_ips"][0]}]},
        }

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.events]

    @property
    def ingress(self) -> list[dict[str, str]]:
        return list((self.service()["status"].get("loadBalancer") or {}).get("ingress") or [])


class Copies:
    """The informer's side of `Cluster`."""

    def __init__(self, objects: dict[str, Object]) -> None:
        self._objects = objects

    def add_handler(self, handler: Callable[[EventType, Object | None, Object | None], None]) -> None:
        self.handler = handler

    def get(self, key: str) -> Object | None:
        return copy.deepcopy(self._objects.get(key))

    def items(self) -> list[Object]:
        return [*self._objects.values()]


def web(
    annotations: dict[str, str] | None = None, *, uid: str = "uid-1", ports: list[dict[str, Any]] | None = None
) -> Object:
    return {
        "metadata": {"namespace": "default", "name": "web", "uid": uid, "annotations": annotations or {}},
        "spec": {"type": "LoadBalancer", "ports": ports or [port(8080, 30080)]},
        "status": {},
    }


def port(number: int, node_port: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number, "nodePort": node_port}


def controller(site: MyCloudSite, cluster: Cluster, **replaced: Any) -> ServiceController:
    """A controller that was just started; of another cluster with `cluster_id` and, besides its own, `network_id`.

    With `started=False` it has only proven whose cluster this is.
    """
    started = replaced.pop("started", True)
    cluster_id, resync = replaced.pop("cluster_id", site.cluster["id"]), replaced.pop("resync", 300.0)
    network_id = replaced.pop("network_id", None)
    cloud = MyCloud(Config(site.endpoint, site.controllers_token, cluster_id, network_id=network_id))
    cloud._client._sleep = lambda _: None  # Pauses before a call is made again are the client's tests' business.
    for name, part in replaced.items():
        setattr(cloud, f"_{name}", part(cloud))
    copies: Any = (Copies(cluster.objects[kind]) for kind in ("services", "nodes", "endpointslices"))
    services, nodes, slices = copies
    as_any: Any = cluster
    options = ServiceOptions(resync=resync)
    made = ServiceController(as_any, cloud, services, nodes, slices, cluster, Metrics(), options, guard(cluster))
    made.evidence()
    if started:
        made.handle(RESYNC)
    return made


def settle(site: MyCloudSite, running: ServiceController, key: str = WEB) -> None:
    """Visits of the Service with the cloud at work in between, until it has nothing left to do."""
    for _ in range(4):
        running.handle(key)
        site.settle()
        running.handle(POLL)


def members(lb: dict[str, Any]) -> set[str]:
    return {f"{b['address']}:{b['port']}" for s in lb["backend_sets"] for b in s["backends"]}


def only(found: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(found) == 1
    return found[0]
