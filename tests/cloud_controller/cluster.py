"""A cluster in memory for load balancer tests: Services, nodes and EndpointSlices."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from cloud_controller.kube import EventType, NotFoundError, Object, ObjectList, PatchType, Resource, key
from tests.fake_kubernetes import merged

WEB = "default/web"


class Cluster:
    """Objects in memory, and the part of the Kubernetes API that the controller uses. `after_write` may raise."""

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

    def list(self, resource: Resource) -> ObjectList:
        return ObjectList([*self.objects[resource.plural].values()], "1")

    def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str, *, type: PatchType, subresource: str = ""
    ) -> Object:
        service = copy.deepcopy(self.get(resource, name, namespace))
        assert patch["metadata"]["uid"] == service["metadata"]["uid"]
        finalizers = service["metadata"].setdefault("finalizers", [])
        if subresource == "status" and type is PatchType.STRATEGIC:
            service["status"] = merged(service["status"], patch["status"], type)
        elif subresource == "status":
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

    def service(self, key: str = WEB) -> Object:
        return self.objects["services"][key]

    def put(self, service: Object) -> None:
        """Create the Service, or change the annotations and the spec of the one that is there."""
        present = self.objects["services"].setdefault(key(service), copy.deepcopy(service))
        if present["metadata"]["uid"] == service["metadata"]["uid"]:
            present["metadata"]["annotations"] = {**service["metadata"]["annotations"]}
            present["spec"] = {**service["spec"]}
        else:
            self.objects["services"][key(service)] = copy.deepcopy(service)

    def put_slice(self, endpoint_slice: Object) -> None:
        self.objects["endpointslices"][key(endpoint_slice)] = endpoint_slice

    def put_node(
        self,
        name: str,
        provider_id: str,
        address: str,
        *,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        self.objects["nodes"][name] = {
            "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"providerID": provider_id},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        }

    def make_ready(self, node: str) -> None:
        self.objects["nodes"][node]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]

    def address(self, node: str) -> str:
        return str(self.objects["nodes"][node]["status"]["addresses"][0]["address"])

    @property
    def reasons(self) -> Sequence[str]:
        return [reason for reason, _ in self.events]

    @property
    def ingress(self) -> Sequence[dict[str, str]]:
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
