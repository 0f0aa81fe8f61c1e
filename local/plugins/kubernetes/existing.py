"""Handles an existing object with the name of a resource to be created."""

from __future__ import annotations

from typing import Any

from cloud_controller.kube import Kube, NotFoundError, Object, Resource
from local.plugins.kubernetes.apply import describe
from local.plugins.kubernetes.wait import NotReadyError, Waiter
from local.plugins.provider import ProviderError, Report


def find(kube: Kube, resource: Resource, obj: dict[str, Any]) -> Object | None:
    """The live object with this object's name, if there is one."""
    try:
        return kube.get(resource, obj["metadata"]["name"], obj["metadata"].get("namespace"))
    except NotFoundError:
        return None


def is_being_deleted(obj: Object) -> bool:
    """Whether the object is deleted but a finalizer still holds it."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def refuse_foreign(resource: Resource, obj: dict[str, Any], existing: Object, manager: str) -> None:
    """Raise ProviderError unless this resource's field manager made the object."""
    managers = {entry.get("manager") for entry in existing["metadata"].get("managedFields") or []}
    if manager not in managers:
        raise ProviderError(
            f"{describe(resource, obj)} already exists and does not belong to this resource; delete it, or give this "
            "one another name"
        )


def make_room(
    kube: Kube,
    resource: Resource,
    obj: dict[str, Any],
    manager: str,
    waiter: Waiter,
    deadline: float,
    report: Report,
) -> None:
    """Return when no object has the name, except one that an interrupted run of this resource made.

    Raises ProviderError for a foreign one, and for one whose deletion does not end before the deadline.
    """
    existing = find(kube, resource, obj)
    if existing is None:
        return
    if not is_being_deleted(existing):
        refuse_foreign(resource, obj, existing, manager)
        report("already exists from an interrupted run; adopting it")
        return
    report("waiting for the deletion of an object with this name")
    try:
        waiter.until_gone(resource, existing, deadline, report)
    except NotReadyError as error:
        raise ProviderError(f"{describe(resource, obj)}: an old object with this name still exists: {error}") from None
