"""Indexes EndpointSlices by Service, for Services whose members are pods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from cloud_controller.controllers.service.rules import SERVICE_NAME_LABEL
from cloud_controller.kube import EventType, Object, ObjectCache, key


class ServiceEndpoints:
    """An index over an EndpointSlice informer; `changed` is called with the Service (NAMESPACE/NAME) of each change."""

    def __init__(self, slices: ObjectCache, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._by_service: dict[str, dict[str, Object]] = {}
        slices.add_handler(self._slice_changed)

    def get(self, service: str) -> tuple[Object, ...]:
        """The slices of this Service, in a stable order."""
        with self._lock:
            found = self._by_service.get(service, {})
            return tuple(found[name] for name in sorted(found))

    def _slice_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        with self._lock:
            for each, present in ((old, False), (new, True)):
                service = each and service_of(each)
                if each and service:
                    slices = self._by_service.setdefault(service, {})
                    if present:
                        slices[key(each)] = each
                    else:
                        slices.pop(key(each), None)
                    if not slices:
                        del self._by_service[service]
        for service in {service_of(each) for each in (old, new) if each}:
            if service:
                self._changed(service)


def service_of(endpoint_slice: Object) -> str | None:
    """NAMESPACE/NAME of the slice's Service; None if it belongs to something else."""
    name = (endpoint_slice["metadata"].get("labels") or {}).get(SERVICE_NAME_LABEL)
    return f"{endpoint_slice['metadata']['namespace']}/{name}" if name else None


def by_service(slices: Iterable[Object]) -> dict[str, list[Object]]:
    """Group the slices by Service."""
    found: dict[str, list[Object]] = {}
    for each in slices:
        if service := service_of(each):
            found.setdefault(service, []).append(each)
    return found
