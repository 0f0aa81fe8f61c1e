"""Rule: a load balancer serves the zones in which the cluster has nodes.

Subnets have no ids before they are made. So a load balancer, and a pool of nodes, is in the zones of the subnets that
its annotation, or its own property, comes from in the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from policy.checklist.asked import Wanted, of_wanted
from policy.clouds.interface import Zones
from policy.objects import dig
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, only_known

_CONTROL_PLANE = ("control-plane", "controlplane", "master")


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Load balancers in zones without nodes, and nodes in zones that a load balancer does not serve."""
    yield from of_wanted(stack, partial(_problems, stack))


def _problems(stack: Stack, wanted: Wanted) -> Iterator[Problem]:
    zones = wanted.cloud.zones
    if zones is not None:
        nodes = {zone for pool in stack.of(*zones.pools) if _is_of_workers(pool) for zone in _of_pool(pool, zones)}
        if nodes:
            yield partial(_problem, wanted, zones, nodes)


def _problem(wanted: Wanted, zones: Zones, nodes: set[str]) -> str | None:
    entry = wanted.catalogue.by_argument.get(zones.annotation)
    if entry is None or entry.ignored or entry.argument not in wanted.asked.settings.given:
        return None
    found = only_known([partial(zones.named, wanted.asked)])
    served = set(found[0]) if found else _of_subnets(wanted.service, "metadata", zones)
    if not served or zones.crosses(wanted.asked):
        return None
    messages = []
    if unserved := sorted(nodes - served):
        messages.append(f"does not serve zone {', '.join(unserved)}, so the nodes there get no traffic")
    if empty := sorted(served - nodes):
        messages.append(f"is in zone {', '.join(empty)}, where no pool has nodes to send traffic to")
    return f"the load balancer {' and '.join(messages)} (annotation {entry.name})" if messages else None


def _is_of_workers(pool: Subject) -> bool:
    return not any(word in pool.name for word in _CONTROL_PLANE)


def _of_pool(pool: Subject, zones: Zones) -> set[str]:
    return _of_subnets(pool, zones.pools[pool.kind], zones)


def _of_subnets(subject: Subject, field: str, zones: Zones) -> set[str]:
    """The zones of the subnets that a property depends on."""
    resource = subject.resource
    dependencies = resource.property_dependencies.get(field, ()) if resource is not None else ()
    subnets = [each for each in dependencies if each.resource_type in zones.subnets]
    return {*only_known(partial(dig, each.props, zones.subnets[each.resource_type]) for each in subnets)}


LOAD_BALANCERS_SERVE_NODE_ZONES = StackRule(
    "lb-service-serve-node-zones",
    problems,
    why=(
        "A network load balancer that does not balance across zones sends traffic from each of its zones to the nodes "
        "of that zone only. Nodes in other zones get no traffic, and clients of a zone without nodes are refused."
    ),
    level=ADVISORY,
    title="Load balancers serve the nodes' zones",
    severity=MEDIUM,
    lines=["11.1.4"],
    sections="4.4, 5.3",
    judges=(
        "The zones of the subnets that a Service's annotation names are those of the stack's node pools and machines, "
        "unless the load balancer balances across zones. Subnets are those that the annotation depends on in the "
        "program, or the zones that it names itself. Machines and pools with `control-plane` or `master` in their "
        "names are left out. Without the annotation, controllers choose a subnet in every zone."
    ),
    unseen=(
        "Subnets that the annotation names by an ID or a tag, and pools whose subnets are not resources of the stack; "
        "a cluster beside another in the same stack."
    ),
    tags=["network", "availability"],
    remedy="Name a subnet in each zone that has nodes, and in no other; or turn on balancing across zones.",
    url=("https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer"),
)
