"""Whether nodes are initialised: without the taint that keeps pods away until a CCM has found their machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from cloud_controller.cloud import Selective
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT, has_taint
from cloud_controller.doctor.checks.causes import CCM_DOWN, NONE
from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import Object, name
from cloud_controller.plan import ActionKind

_FAILED = ("NodeNotSynced", "FailedToGetInstanceMetadata")


def uninitialised(node: Object) -> bool:
    """Whether the node waits for a CCM."""
    return has_taint(node, UNINITIALIZED_TAINT)


def ours(seen: Seen) -> list[Object]:
    """The nodes that the cloud's controllers are for; all nodes if the cloud cannot be opened."""
    try:
        instances = seen.opened_cloud().instances
    except Unreadable:  # Another check says so.
        return [*seen.nodes()]
    return [node for node in seen.nodes() if not (isinstance(instances, Selective) and instances.leaves_alone(node))]


def machine_id(node: Object) -> str:
    """The ID of the node's machine, by which every cloud ends its provider IDs; empty without one."""
    return re.split(r"[/.]", node["spec"].get("providerID") or "")[-1]


def age(seen: Seen, obj: Object) -> timedelta:
    """For how long the object has existed."""
    return since(seen, obj["metadata"]["creationTimestamp"])


def since(seen: Seen, time: str) -> timedelta:
    """The span from a time, as in an object, to this look."""
    return seen.now - datetime.fromisoformat(time)


def refusals(seen: Seen) -> Mapping[str, str]:
    """Why the node controller leaves nodes as they are, by name."""
    found = seen.plan("node")
    plan = found.plan if found else ()
    return {a.target.removeprefix("node/"): a.reason or "" for a in plan if a.kind is ActionKind.IGNORE}


def _run(seen: Seen) -> Iterator[Finding]:
    waiting = [node for node in ours(seen) if uninitialised(node) and age(seen, node) >= seen.grace]
    if not waiting:
        return
    try:
        refused = refusals(seen)
        runs = seen.plan("node") is not None
    except Unreadable:  # Another check says so; that the node waits is seen without the cloud.
        refused, runs = {}, True
    for node in waiting:
        events = [event for event in seen.events(node) if event.get("reason") in _FAILED][:1]
        said = tuple(f"event {event['reason']}: {event.get('message')}" for event in events)
        reason = refused.get(name(node))
        if reason:
            remedy, causes = _remedy(reason), NONE
        elif not runs:
            remedy, causes = "run what initialises nodes here: this CCM's arguments leave out controller node", NONE
        else:
            remedy, causes = "see the causes above; without any, the CCM's log about this node", None
        yield Finding(
            subject=f"node/{name(node)}",
            what=f"it has waited for {_minutes(age(seen, node))} to be initialised, and pods do not get there",
            evidence=(f"taint {UNINITIALIZED_TAINT}", *((reason,) if reason else said)),
            remedy=remedy,
            follows_from=causes,
        )


def _remedy(reason: str) -> str:
    if reason.startswith("the cloud has no machine"):
        return (
            "delete the node if its machine is gone; otherwise register it with the machine's provider ID, or name, "
            "and check that the machine has the cluster's tag"
        )
    if "belongs to the older node" in reason:
        return "delete the node that does not run on this machine, and correct its kubelet's provider ID"
    return "correct what the reason names; the CCM then initialises the node by itself"


def _minutes(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes} min" if minutes < 180 else f"{minutes // 60} h"


INITIALISED = Check(
    name="nodes-initialised",
    holds="no node waits for its initialisation",
    why="pods are not scheduled on a node with the taint `uninitialized`",
    lines=("11.2.3", "11.4.5", "10.1.1"),
    page="runbooks/nodes-initialised.md",
    run=_run,
    after=CCM_DOWN,
)
