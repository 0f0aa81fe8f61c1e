"""What controllers use of the Kubernetes API: the part of `Kube` and `Informer` that another implementation can fill.

A function that only reads and writes objects takes `KubeApi`, so that its tests need no server. What opens
connections, or needs discovery, watches or server-side apply, takes `Kube`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cloud_controller.fence import Fence
from cloud_controller.kube.informer import Handler
from cloud_controller.kube.resources import Object, ObjectList, PatchType, Resource


class KubeApi(Protocol):
    """A Kubernetes API server as one identity. `Kube` documents the methods; each raises `ApiError`."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """See `Kube.get`."""
        ...

    def list(self, resource: Resource, namespace: str | None = None) -> ObjectList:
        """See `Kube.list`."""
        ...

    def create(self, resource: Resource, obj: Object) -> Object:
        """See `Kube.create`."""
        ...

    def replace(self, resource: Resource, obj: Object) -> Object:
        """See `Kube.replace`."""
        ...

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType,
        subresource: str | None = None,
    ) -> Object:
        """See `Kube.patch`."""
        ...

    def delete(self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None) -> None:
        """See `Kube.delete`."""
        ...

    def version(self) -> dict[str, str]:
        """See `Kube.version`."""
        ...

    def fenced(self, fence: Fence) -> KubeApi:
        """See `Kube.fenced`."""
        ...

    def with_timeout(self, seconds: float) -> KubeApi:
        """See `Kube.with_timeout`."""
        ...

    def close(self) -> None:
        """See `Kube.close`."""
        ...


class ObjectCache(Protocol):
    """A local copy of one kind of object. `Informer` documents the methods."""

    def add_handler(self, handler: Handler) -> None:
        """See `Informer.add_handler`."""
        ...

    def add_deletion_handler(self, handler: Callable[[Object], None]) -> None:
        """See `Informer.add_deletion_handler`."""
        ...

    def get(self, key: str) -> Object | None:
        """See `Informer.get`."""
        ...

    def items(self) -> list[Object]:
        """See `Informer.items`."""
        ...
