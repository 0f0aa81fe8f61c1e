"""Whether nodes say what their machines are: provider ID, labels and addresses."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.node import REGION_LABELS, TYPE_LABELS, ZONE_LABELS
from cloud_controller.doctor.checks.causes import CCM_DOWN, NONE
from cloud_controller.doctor.checks.nodes import age, ours, refusals, uninitialised
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import Object, name
from cloud_controller.plan import FieldChange

_LABELS = (REGION_LABELS[0], ZONE_LABELS[0], TYPE_LABELS[0])
_RESTORED = "find out who changed it: a running CCM restores it within minutes"


def _provider_ids(seen: Seen) -> Iterator[Finding]:
    refused = refusals(seen)
    for node in ours(seen):
        subject, given = f"node/{name(node)}", node["spec"].get("providerID")
        if not given:
            if age(seen, node) >= seen.grace:
                yield Finding(
                    subject=subject,
                    what="it has no provider ID",
                    evidence=(f"spec.providerID is empty; {refused.get(name(node)) or _of_machine(seen, node)}",),
                    remedy="correct what keeps the CCM from setting it",
                    # Without the taint, its kubelet did not wait for the CCM.
                    follows_from=frozenset({"nodes-initialised" if uninitialised(node) else "kubernetes-flags"}),
                )
        elif _is_of_another_cloud(seen, node):
            scheme = f"{seen.cloud().provider_name}://"
            yield Finding(
                subject=subject,
                what="its provider ID is not one of this cloud",
                evidence=(f"spec.providerID is {given}; the cloud's begin with {scheme}",),
                remedy="a provider ID cannot be changed: delete the node and let its kubelet register it again with "
                f"{scheme}..., or without any",
                follows_from=NONE,
            )
        elif (reason := refused.get(name(node))) and view.PROVIDED_IP not in reason and not uninitialised(node):
            yield Finding(
                subject=subject,
                what="its provider ID leads to no machine of its own",
                evidence=(f"spec.providerID is {given}", reason),
                remedy="find out which node runs on the machine; delete the other one, and correct its kubelet's "
                "provider ID before it registers again",
                follows_from=NONE,
            )


def _is_of_another_cloud(seen: Seen, node: Object) -> bool:
    """By the scheme of its provider ID. One without, such as `cn-hangzhou.i-1`, is for the plan to judge."""
    scheme, found, _ = (node["spec"].get("providerID") or "").partition("://")
    return bool(found) and scheme != seen.cloud().provider_name


def _of_machine(seen: Seen, node: Object) -> str:
    """What the node controller's plan shows of the machine of a node without provider ID that it does not refuse."""
    found = seen.plan("node")
    if found is None:
        return "this CCM leaves out controller node"
    known = f"node/{name(node)}" in {action.target for action in found.plan.changes}
    return "the cloud knows its machine" if known else f"the CCM's plan finds no machine named {name(node)}"


def _labels(seen: Seen) -> Iterator[Finding]:
    differing = _differing(seen, "metadata.labels[")
    for node in ours(seen):
        # `nodes-initialised` and `provider-ids` tell of these.
        if uninitialised(node) or _is_of_another_cloud(seen, node):
            continue
        if changes := differing.get(name(node)):
            yield Finding(
                subject=f"node/{name(node)}",
                what="its labels are not what its machine is",
                evidence=tuple(map(str, changes)),
                remedy=_RESTORED,
                severity=Severity.WARNING,
            )
            continue
        labels = node["metadata"].get("labels") or {}
        if missing := [label for label in _LABELS if not labels.get(label)]:
            yield Finding(
                subject=f"node/{name(node)}",
                what=f"it has no label {', '.join(missing)}",
                evidence=("the cloud does not say it of its machine, or the CCM does not run controller node",),
                remedy="run controller node; where it runs, look at the machine in the cloud",
                severity=Severity.WARNING,
            )


def _addresses(seen: Seen) -> Iterator[Finding]:
    for of, changes in _differing(seen, "status.addresses").items():
        yield Finding(
            subject=f"node/{of}",
            what="its addresses are not those of its machine",
            evidence=tuple(map(str, changes)),
            remedy=_RESTORED,
            severity=Severity.WARNING,
        )
    for of, reason in refusals(seen).items():
        if view.PROVIDED_IP in reason:
            yield Finding(
                subject=f"node/{of}",
                what="its kubelet's --node-ip is not an address of its machine",
                evidence=(reason,),
                remedy="give the kubelet an address of its machine, or the machine this address",
                follows_from=NONE,
            )


def _differing(seen: Seen, field: str) -> dict[str, list[FieldChange]]:
    """The changes of fields with this prefix that initialised nodes need, by node."""
    found = seen.plan("node")
    waiting = {name(node) for node in seen.nodes() if uninitialised(node)}
    differing: dict[str, list[FieldChange]] = {}
    for action in found.plan.changes if found else ():
        of = action.target.removeprefix("node/")
        changes = [change for change in action.changes if change.field.startswith(field)]
        if changes and of not in waiting:
            differing[of] = changes
    return differing


PROVIDER_IDS = Check(
    name="provider-ids",
    holds="every node has the provider ID of a machine of its own",
    why="by its provider ID, controllers find a node's machine: for its addresses, its route, load balancers and its "
    "end",
    lines=("11.2.4", "10.1.6"),
    page="runbooks/provider-ids.md",
    run=_provider_ids,
    after=CCM_DOWN | {"nodes-initialised"},
)
LABELS = Check(
    name="node-labels",
    holds="the labels of region, zone and instance type are those of the machines",
    why="the scheduler places pods and volumes by the labels of region and zone",
    lines=("11.2.5",),
    page="runbooks/node-labels.md",
    run=_labels,
    after=CCM_DOWN | {"nodes-initialised", "provider-ids"},
)
ADDRESSES = Check(
    name="node-addresses",
    holds="the nodes' addresses are those of their machines",
    why="the API server reaches kubelets by them, for logs and exec, and so do load balancers",
    lines=("10.1.4",),
    page="runbooks/node-addresses.md",
    run=_addresses,
    after=CCM_DOWN | {"nodes-initialised", "provider-ids"},
)
