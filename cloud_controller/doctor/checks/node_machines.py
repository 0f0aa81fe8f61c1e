"""Whether each node has a machine that runs, and each machine of the cluster its node."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.cloud import Instance, InstanceState
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.node_lifecycle import NAME as LIFECYCLE
from cloud_controller.doctor.checks.causes import CCM_DOWN
from cloud_controller.doctor.checks.nodes import machine_id, ours, refusals, uninitialised
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object, name
from cloud_controller.plan import ActionKind

_BOOTING = 5
"""A machine boots before its node can join: it may take so many times as long as an initialisation."""


def _run(seen: Seen) -> Iterator[Finding]:
    yield from _lost(seen)
    yield from _replaced(seen)
    yield from _never_joined(seen)


def _lost(seen: Seen) -> Iterator[Finding]:
    found = seen.plan(LIFECYCLE)
    # Held deletions are another check's.
    about = {a.target: a for a in (found.plan if found else ()) if not a.held}
    for node in ours(seen):
        action = about.get(f"node/{name(node)}")
        if view.is_ready(node):
            continue
        if view.has_taint(node, view.SHUTDOWN_TAINT) or (action and action.kind is ActionKind.UPDATE):
            yield Finding(
                subject=f"node/{name(node)}",
                what="its machine is stopped",
                evidence=(f"it is not ready; taint {view.SHUTDOWN_TAINT}",),
                remedy="start the machine, or delete it and its node",
                severity=Severity.WARNING,
            )
        elif action:
            yield Finding(
                subject=f"node/{name(node)}",
                what="it is not ready, and its machine is gone or cannot be found",
                evidence=(f"{action.summary}: {action.reason}",),
                remedy="a running CCM deletes the node once it is sure that the machine is gone; otherwise correct "
                "what the reason names",
                follows_from=_why_unfound(seen, node),
            )


def _replaced(seen: Seen) -> Iterator[Finding]:
    """Nodes that another machine of the same name keeps ready: provider IDs never change."""
    alive = [machine for machine in seen.machines() if machine.state is not InstanceState.TERMINATED]
    ids = {machine.id for machine in alive}
    by_name = {each: machine for machine in alive for each in machine.node_names}
    for node in ours(seen):
        other, own = by_name.get(name(node)), machine_id(node)
        if view.is_ready(node) and own and own not in ids and other is not None and _is_old(seen, other):
            yield Finding(
                subject=f"node/{name(node)}",
                what="it is ready, but the machine that its provider ID names is gone",
                evidence=(f"spec.providerID {node['spec']['providerID']}; machine {other.id} has its name",),
                remedy=f"delete the node, and restart the kubelet of machine {other.id}, which registers it again; "
                "until then load balancers do without it",
            )


def _why_unfound(seen: Seen, node: Object) -> frozenset[str] | None:
    """The check that finds what keeps the node's machine from being found."""
    if uninitialised(node):
        return frozenset({"nodes-initialised"})
    found = node["spec"].get("providerID") and name(node) not in refusals(seen)
    return None if found else frozenset({"provider-ids"})


def _never_joined(seen: Seen) -> Iterator[Finding]:
    joined = {each for node in seen.nodes() for each in (name(node), machine_id(node))}
    for machine in seen.machines():
        if (
            machine.state is InstanceState.RUNNING
            and not {machine.id, *machine.node_names} & joined
            and _is_old(seen, machine)
        ):
            yield Finding(
                subject=f"machine/{machine.id}",
                what=f"machine {machine.name} of the cluster runs, and has no node",
                evidence=(f"created at {machine.created_at:%Y-%m-%d %H:%M:%S} UTC",),
                remedy="read its boot log and its kubelet's log; if it is not the cluster's, remove the cluster's tag "
                "from it",
                severity=Severity.WARNING,
            )


def _is_old(seen: Seen, machine: Instance) -> bool:
    return machine.created_at is not None and seen.now - machine.created_at >= _BOOTING * seen.grace


CHECK = Check(
    name="node-machines",
    holds="every node's machine runs, and every machine of the cluster is a node",
    why="nodes without machines keep pods, addresses and routes that lead nowhere; machines without nodes only cost",
    lines=("10.1.1", "10.1.7"),
    page="runbooks/node-machines.md",
    run=_run,
    after=CCM_DOWN,
)
