"""Whether nodes are joined to their machines: initialised, with provider ID, labels and addresses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object
from cloud_controller.kube.resources import name

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_FAILED = ("NodeNotSynced", "FailedToGetInstanceMetadata")
_CCM_DOWN = frozenset(
    {"api-server", "cloud-config", "cloud-api", "cloud-rights", "ccm-pods", "daemon-health", "leader"}
)


def uninitialised(node: Object) -> bool:
    """Whether the node waits for a CCM."""
    return any(taint["key"] == UNINITIALIZED for taint in node["spec"].get("taints") or ())


def _initialised(seen: Seen) -> Iterator[Finding]:
    for node in filter(uninitialised, seen.nodes()):
        waits = seen.now - datetime.fromisoformat(node["metadata"]["creationTimestamp"])
        if waits < seen.grace:
            continue
        said = [event for event in seen.events(node) if event.get("reason") in _FAILED][:1]
        yield Finding(
            subject=f"node/{name(node)}",
            what=f"it has waited for {_minutes(waits)} to be initialised, and pods do not get there",
            evidence=(
                f"taint {UNINITIALIZED}",
                *(f"event {event['reason']}: {event.get('message')}" for event in said),
            ),
            remedy="correct what the event names" if said else "see the causes above, or the CCM's log about this node",
        )


def _minutes(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes} min" if minutes < 180 else f"{minutes // 60} h"


INITIALISED = Check(
    name="nodes-initialised",
    holds="no node waits for its initialisation",
    why="pods are not scheduled on a node with the taint `uninitialized`",
    lines=("11.2.3", "11.4.5", "10.1.1"),
    page="runbooks/nodes-initialised.md",
    run=_initialised,
    after=_CCM_DOWN,
)
