"""Whether the members of load balancers pass their health checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cloud_controller.controllers.nodes import is_ready
from cloud_controller.controllers.service.endpoints import by_service
from cloud_controller.controllers.service.rules import ready_nodes
from cloud_controller.doctor.checks.load_balancers import subject
from cloud_controller.doctor.checks.nodes import machine_id
from cloud_controller.doctor.findings import Check, Finding, OutOfReach, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import ENDPOINT_SLICES, Object, key, name, uid
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.sharing import owner_of_part
from cloud_controller.planning import Found, Health, healths


def _run(seen: Seen) -> Iterator[Finding]:
    found = seen.plan("service")
    if found is None:
        return
    health = seen.once("health", lambda: healths(seen.cloud(), found))
    slices = by_service(seen.list(ENDPOINT_SLICES))
    nodes = _by_address(seen)
    untold = []
    for service in seen.services():
        ready = ready_nodes(slices.get(key(service), ()))
        # Without pods, health checks fail as they should.
        if ready:
            members = _members(service, found, health)
            if members and {*members.values()} == {None}:
                untold.append(subject(service))
            known = {each: ok for each, ok in members.items() if ok is not None}
            yield from _of_service(service, known, nodes, {*ready})
    if untold:
        raise OutOfReach(f"the cloud tells the health of no backend of {', '.join(untold)}")


def _members(service: Object, found: Found, health: Mapping[str, Health]) -> dict[Member, bool | None]:
    """The Service's members and whether they are healthy; None: the cloud does not tell. One that fails on any of its
    ports is unhealthy."""
    known: dict[Member, bool | None] = {}
    for lb_id, of_members in health.items():
        lb = found.load_balancers[lb_id]
        for pool in lb.model.pools:
            owner = owner_of_part(pool.tags, lb)
            for member in pool.members if owner is not None and owner.uid == uid(service) else ():
                passes, before = of_members.get((pool.name, *member.key)), known.get(member)
                known[member] = before if passes is None else passes and before is not False
    return known


def _of_service(
    service: Object, members: Mapping[Member, bool], nodes: Mapping[str, Object], ready: set[str | None]
) -> Iterator[Finding]:
    if service["spec"].get("externalTrafficPolicy") == "Local":
        # Only nodes with ready pods are healthy then: that is how traffic finds them.
        members = {each: ok for each, ok in members.items() if _node(each, nodes) in {None, *ready}}
    unhealthy = [each for each, ok in members.items() if not ok]
    if not unhealthy:
        return
    all_of_them = len(unhealthy) == len(members)
    down = sorted({_node(each, nodes) or "" for each in unhealthy if _is_down(nodes.get(each.address))})
    yield Finding(
        subject=subject(service),
        what=f"{len(unhealthy)} of its {len(members)} backends fail their health checks",
        evidence=(
            ", ".join(f"{each.address}:{each.port}" for each in unhealthy[:5]),
            *((f"nodes that are not ready: {', '.join(down)}",) if down else ()),
        ),
        remedy="see why these nodes are not ready" if down else _REMEDY,
        severity=Severity.CRITICAL if all_of_them else Severity.WARNING,
    )


_REMEDY = (
    "check the way from the load balancer to this port: security groups of the nodes, kube-proxy, and whether the "
    "health check's protocol, port and path are the pods'"
)


def _by_address(seen: Seen) -> dict[str, Object]:
    """The nodes by what may be a member's address: one of their own, or the ID of their machine."""
    addresses = ((node, each["address"]) for node in seen.nodes() for each in node["status"].get("addresses") or ())
    return {machine_id(node): node for node in seen.nodes()} | {address: node for node, address in addresses}


def _node(member: Member, nodes: Mapping[str, Object]) -> str | None:
    """The node of this address; None for a pod's."""
    return name(nodes[member.address]) if member.address in nodes else None


def _is_down(node: Object | None) -> bool:
    return node is not None and not is_ready(node)


CHECK = Check(
    name="backend-health",
    holds="the members of load balancers pass their health checks",
    why="a load balancer sends no traffic to members that fail; with all of them, the Service is down",
    lines=("11.2.7", "10.1.8"),
    page="runbooks/backend-health.md",
    run=_run,
    after=frozenset({"api-server", "cloud-config", "cloud-api", "node-machines", "routes", "backends"}),
)
