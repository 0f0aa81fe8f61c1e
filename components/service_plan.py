"""What the service controller would do about the address of one Service, by its own plan.

Previews and updates ask it; the daemon alone carries it out. Heavy to import.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic, sleep
from typing import Any

from cloud_controller.cli.options import add_common, service_options
from cloud_controller.controllers.service import controller
from cloud_controller.controllers.service.address_changes import ANNOTATION, AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.controllers.service.status import target_of
from cloud_controller.kube import SERVICES, Object
from cloud_controller.plan import Action
from cloud_controller.retries import round_pause

from .cluster_plan import NotConverged, Report, Wait, World

_ASSUMED_NODE_PORT = 30000
"""Of a port that the Service does not have yet: no address depends on it."""


def options_of(cloud: str, arguments: Sequence[str]) -> ServiceOptions:
    """The service controller's options by the daemon's flags."""
    parser = argparse.ArgumentParser()
    add_common(parser)
    given, _others = parser.parse_known_args([f"--cloud={cloud}", *arguments])
    return service_options(given, ())


def updated(live: Object, before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    """The Service after an update from these inputs to those; what is not known yet stays as it is."""
    stored = live["metadata"].get("annotations") or {}
    removed = _annotations(before).keys() - _annotations(after).keys()
    known = {key: text for key, text in _annotations(after).items() if isinstance(text, str)}
    annotations = {**{key: text for key, text in stored.items() if key not in removed}, **known}
    wanted = {key: value for key, value in (after.get("spec") or {}).items() if _is_plain(value)}
    if "ports" in wanted:
        wanted["ports"] = _with_node_ports(wanted["ports"], live["spec"].get("ports") or ())
    return {
        **live,
        "metadata": {**live["metadata"], "annotations": annotations},
        "spec": {**live["spec"], **wanted},
    }


def address_change(world: World, service: Object, options: ServiceOptions) -> Action | None:
    """The change by which the Service would get another address; None if it keeps its own.

    Its `held` is the digest by which the change is acknowledged. Raises the errors of cloud and API server.
    """
    metadata = service["metadata"]
    unacknowledged = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != ANNOTATION}
    asked = {**service, "metadata": {**metadata, "annotations": unacknowledged}}
    options = replace(options, address_changes=AddressChanges.ACKNOWLEDGE)
    plan = controller.plan(controller.observe(world.kube, world.cloud, options, applied=[asked]), options)
    target = target_of(metadata["namespace"], metadata["name"])
    return next((action for action in plan if action.target == target and action.acknowledgement), None)


def read(world: World, key: str) -> Object:
    """The Service NAMESPACE/NAME as it is stored. Raises NotFoundError and other errors of the API server."""
    namespace, _, name = key.partition("/")
    return world.kube.get(SERVICES, name, namespace)


def address_of(service: Object) -> str:
    """The first address in its status; empty if it has none."""
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [{}]
    return str(ingress[0].get("ip") or ingress[0].get("hostname") or "")


def settled_address(world: World, key: str, options: ServiceOptions, deadline: float, report: Report) -> str:
    """The Service's address once the daemon has nothing left to do about it; a change that is held counts as done.

    Reports a long wait. Raises NotConverged at the deadline, and the errors of cloud and API server.
    """
    end = monotonic() + deadline
    wait = Wait(report)
    rounds = 0
    while missing := _missing(world, key, options):
        if monotonic() > end:
            raise NotConverged(f"Service {key} has no new address after {deadline:g} s; still to do: {missing}")
        rounds += 1
        wait.for_(missing)
        sleep(min(round_pause(rounds), max(0.0, end - monotonic())))
    return address_of(read(world, key))


def _missing(world: World, key: str, options: ServiceOptions) -> str:
    """What the daemon still has to do about the Service's load balancer, in words; empty if nothing is."""
    observation = controller.observe(world.kube, world.cloud, options)
    target = target_of(*key.split("/"))
    plan = controller.plan(observation, options)
    # In doubt, what is held is all that there is to do.
    todo = plan.changes if observation.anchored else (*plan.changes, *plan.held)
    pending = [action.summary for action in todo if action.target == target]
    busy = [
        f"load balancer {lb.id} is not ready"
        for lb in observation.load_balancers
        if not lb.settled and any(f"{owner.namespace}/{owner.name}" == key for owner in lb.owners)
    ]
    return "; ".join([*pending, *busy])


def _annotations(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return (inputs.get("metadata") or {}).get("annotations") or {}


def _is_plain(value: Any) -> bool:
    """Whether all of it is known and no secret."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | bool)


def _with_node_ports(ports: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ports as the API server would complete them."""
    known = {(each["port"], each.get("protocol", "TCP")): each.get("nodePort") for each in stored}
    found = []
    for each in ports:
        port = {"protocol": "TCP", "targetPort": each["port"], **each}
        found.append({"nodePort": known.get((port["port"], port["protocol"])) or _ASSUMED_NODE_PORT, **port})
    return found
