"""Finds Services of the manifests that ask for one node port: each would be accepted alone, but not both. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cloud_controller.cli.planned_service import Refusal
from cloud_controller.cli.service_files import GivenService
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import Object

_WITH_NODE_PORTS = ("LoadBalancer", "NodePort")


def collisions(services: Iterable[GivenService]) -> dict[str, Refusal]:
    """Why these Services (NAMESPACE/NAME) are refused: one before them, in the order of the manifests, has the port."""
    holders: dict[int, GivenService] = {}
    found: dict[str, Refusal] = {}
    for given in services:
        asked = dict(_asked(given.object))
        taken = next((port for port in asked if port in holders), None)
        if taken is None:
            holders |= dict.fromkeys(asked, given)
        else:
            holder = holders[taken]
            why = f"{taken} is also a node port of Service {holder.key} ({holder.source})"
            found[given.key] = Refusal.of(InvalidConfiguration(asked[taken], why, "another port, or none"))
    return found


def _asked(service: Object) -> Iterator[tuple[int, str]]:
    """The node ports that the manifest itself names, each with its field; two protocols of a Service may share one."""
    spec = service.get("spec")
    if not isinstance(spec, dict) or spec.get("type") not in _WITH_NODE_PORTS:
        return
    fields = [("spec.healthCheckNodePort", spec.get("healthCheckNodePort"))]
    ports = spec.get("ports")
    for index, port in enumerate(ports if isinstance(ports, list) else ()):
        fields.append((f"spec.ports[{index}].nodePort", port.get("nodePort") if isinstance(port, dict) else None))
    yield from ((port, field) for field, port in fields if isinstance(port, int) and port > 0)
