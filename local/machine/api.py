"""A machine's calls of the API server as awaitables: the blocking client runs on a few threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from cloud_controller.kube import (
    CONFIG_MAPS,
    CSI_NODES,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUME_ATTACHMENTS,
    ForbiddenError,
    Kube,
    NotFoundError,
    PatchType,
    Resource,
    name,
    uid,
)
from local.machine.sources import References, Sources, TokenWish

Object = dict[str, Any]
T = TypeVar("T")

LEASE_NAMESPACE = "kube-node-lease"
_THREADS = 4
_UNTIL_AUTHORISED = (0.1, 0.2, 0.4, 0.8)


class NodeApi:
    """The API server as one node's kubelet uses it. Every method raises `ApiError`."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="api")

    async def call(self, function: Callable[[], T]) -> T:
        """Run a blocking function on one of the threads."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def call_for_pod(self, function: Callable[[], T]) -> T:
        """As `call`, for what a node may read only because of a pod that is bound to it.

        The node authoriser learns of a binding by a watch of its own, perhaps a moment later than this machine: a
        forbidden read is retried for a second and a half.
        """
        for delay in _UNTIL_AUTHORISED:
            try:
                return await self.call(function)
            except ForbiddenError:
                await asyncio.sleep(delay)
        return await self.call(function)

    def close(self) -> None:
        """Cancel the calls that wait for a thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def create_node(self, node: Object) -> Object:
        """Register the node. Raises `AlreadyExistsError`."""
        return await self.call(lambda: self.kube.create(NODES, node))

    async def get_node(self, name: str) -> Object:
        """The current node."""
        return await self.call(lambda: self.kube.get(NODES, name))

    async def patch_node(self, name: str, patch: Object) -> Object:
        """Merge labels and annotations into the node."""
        return await self.call(lambda: self.kube.patch(NODES, name, patch, type=PatchType.MERGE))

    async def post_node_status(self, name: str, status: Object) -> Object:
        """Merge the status into the node's, conditions and addresses by their type."""
        patch = {"status": status}
        return await self.call(
            lambda: self.kube.patch(NODES, name, patch, type=PatchType.STRATEGIC, subresource="status")
        )

    async def get_lease(self, name: str) -> Object | None:
        """The node's Lease, or None."""
        return await self.call(lambda: _or_none(self.kube, LEASES, name, LEASE_NAMESPACE))

    async def create_lease(self, lease: Object) -> Object:
        """Create the node's Lease."""
        return await self.call(lambda: self.kube.create(LEASES, lease, LEASE_NAMESPACE))

    async def replace_lease(self, lease: Object) -> Object:
        """Renew the node's Lease."""
        return await self.call(lambda: self.kube.replace(LEASES, lease))

    async def patch_pod_status(self, namespace: str, name: str, patch: Object) -> Object:
        """Merge a pod's status."""
        return await self.call(
            lambda: self.kube.patch(PODS, name, patch, namespace, type=PatchType.STRATEGIC, subresource="status")
        )

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Remove the object of a pod whose processes have ended."""
        await self.call(lambda: self.kube.delete(PODS, name, namespace, uid=uid, grace_seconds=0))

    async def create_event(self, event: Object) -> Object:
        """Write an Event."""
        return await self.call(lambda: self.kube.create(EVENTS, event))

    async def patch_event(self, namespace: str, name: str, patch: Object) -> Object:
        """Increase an Event's count."""
        return await self.call(lambda: self.kube.patch(EVENTS, name, patch, namespace, type=PatchType.MERGE))

    async def fetch(self, namespace: str, needed: References) -> Sources:
        """The Secrets and ConfigMaps that a pod needs, without its tokens; missing ones are left out."""

        def get_all(resource: Resource, names: frozenset[str]) -> dict[str, Object]:
            found = {name: _or_none(self.kube, resource, name, namespace) for name in sorted(names)}
            return {name: obj for name, obj in found.items() if obj is not None}

        return await self.call_for_pod(
            lambda: Sources(get_all(SECRETS, needed.secrets), get_all(CONFIG_MAPS, needed.config_maps))
        )

    async def get_claim(self, namespace: str, name: str) -> Object:
        """A PersistentVolumeClaim of a pod on this machine."""
        return await self.call_for_pod(lambda: self.kube.get(PERSISTENT_VOLUME_CLAIMS, name, namespace))

    async def get_volume(self, name: str) -> Object:
        """The PersistentVolume of such a claim."""
        return await self.call_for_pod(lambda: self.kube.get(PERSISTENT_VOLUMES, name))

    async def get_volume_attachment(self, name: str) -> Object | None:
        """A VolumeAttachment to this node, or None."""
        return await self.call_for_pod(lambda: _or_none(self.kube, VOLUME_ATTACHMENTS, name))

    async def publish_csi_node(self, wanted: Object) -> None:
        """Register the node's CSI drivers, replacing those of an earlier node of its name."""

        def publish() -> None:
            present = _or_none(self.kube, CSI_NODES, name(wanted))
            if present is not None:
                if _registers(present) == _registers(wanted):
                    return
                self.kube.delete(CSI_NODES, name(wanted), uid=uid(present))
            self.kube.create(CSI_NODES, wanted)

        await self.call(publish)

    async def request_token(self, pod: Object, wish: TokenWish) -> str:
        """A token of the pod's service account that is bound to the pod. A secret."""
        metadata = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        spec: Object = {"expirationSeconds": wish.seconds, "boundObjectRef": bound}
        if wish.audience:
            spec["audiences"] = [wish.audience]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        account = pod["spec"].get("serviceAccountName") or "default"
        answer = await self.call_for_pod(
            lambda: self.kube.create(
                SERVICE_ACCOUNTS, request, metadata["namespace"], name=account, subresource="token"
            )
        )
        return str(answer["status"]["token"])


def _registers(csi_node: Object) -> tuple[list[str], Any]:
    """The nodes that a CSINode belongs to, and its drivers."""
    owners = csi_node["metadata"].get("ownerReferences") or []
    return [owner["uid"] for owner in owners], csi_node["spec"].get("drivers")


def _or_none(kube: Kube, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
    try:
        return kube.get(resource, name, namespace)
    except NotFoundError:
        return None
