"""Initialises nodes from their machines: provider ID, addresses and labels; then removes the uninitialized taint.

With an external cloud provider, the kubelet registers its node with that taint, which keeps pods away until this
controller has queried the cloud. Later changes of the machine are applied too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cloud_controller import apply
from cloud_controller.cloud import CloudError, Instance, InvalidConfiguration, NodeAddress
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.kube import NODES, KubeApi, Object, PatchType, name
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

NAME = "node"
COMPONENT = "cloud-node-controller"
"""The source of its events (upstream's name)."""

# Each fact has two labels: the current one, then the beta one.
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io")


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """`declared`: names of expected nodes; those that have not registered yet get assumed actions."""

    declared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """Nodes, their machines by node name (None: it does not exist), and errors of individual nodes.

    `doubts`: see `InstanceSnapshot.doubts`.
    """

    nodes: tuple[Object, ...]
    instances: Mapping[str, Instance | None]
    errors: Mapping[str, CloudError] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """Write what differs: a status patch, then a patch of metadata and spec, which removes the taint."""

    node: Object
    labels: Mapping[str, str]
    annotations: Mapping[str, str | None]
    provider_id: str | None
    addresses: tuple[NodeAddress, ...] | None
    initialise: bool


def observe(kube: KubeApi, machines: InstanceSnapshot) -> NodeObservation:
    """Every node of the cluster and its machine."""
    return observe_nodes(kube.list(NODES).items, machines)


def observe_nodes(
    nodes: Iterable[Object],
    machines: InstanceSnapshot,
    max_age: float | None = None,
    among: Iterable[Object] | None = None,
) -> NodeObservation:
    """The machines of these nodes. `max_age`: see `InstanceSnapshot`. `among`: all nodes (None: these are all).

    Raises `CloudError`.
    """
    nodes = tuple(nodes)
    described = machines.describe(nodes, max_age)
    everything = nodes if among is None else tuple(among)
    instances, errors = described = machines.exclusive(described, everything)
    waiting = (node for node in nodes if view.has_taint(node, view.UNINITIALIZED_TAINT))
    return NodeObservation(nodes, instances, errors, machines.doubts(described, waiting, everything))


def plan(observation: NodeObservation, options: NodeOptions = NodeOptions()) -> Plan:
    """One action for each node that is uninitialized or differs from its machine."""
    ordered = sorted(observation.nodes, key=name)
    missing = options.declared - {name(node) for node in ordered}
    actions = [action for node in ordered for action in _node_actions(node, observation)]
    return Plan.of(actions) + plan_assumed(missing)


def plan_assumed(names: Iterable[str]) -> Plan:
    """The assumed actions for declared nodes that have not registered yet."""
    return Plan.of(
        Action(ActionKind.UPDATE, f"node/{node}", "initialise after registration", assumed=True)
        for node in sorted(names)
    )


@apply.performs(UpdateNode)
def update_node(operation: UpdateNode, run: apply.Run) -> None:
    """Write addresses before the taint is removed: pods that are scheduled then need them."""
    node = operation.node
    if operation.addresses is not None:
        # A merge patch replaces the list. A strategic one would merge by type and mix up two addresses of one type.
        entries = [{"type": address.type, "address": address.address} for address in operation.addresses]
        written = view.patch_status(run.kube, node, {"addresses": entries}, PatchType.MERGE)
        if written is None:
            return
        node = written
    view.patch_node(run.kube, node, lambda current: patch_of(operation, current))
    if operation.initialise:
        run.events.normal(node, "Synced", "Node synced successfully")


def patch_of(operation: UpdateNode, current: Object) -> Object | None:
    """The merge patch of metadata and spec from `current` to the desired state; None if nothing differs."""
    patch: dict[str, Any] = {}
    metadata = {"labels": dict(operation.labels), "annotations": dict(operation.annotations)}
    if metadata := {key: value for key, value in metadata.items() if value}:
        patch["metadata"] = metadata
    spec: dict[str, Any] = {}
    if operation.provider_id and not current["spec"].get("providerID"):
        spec["providerID"] = operation.provider_id
    if operation.initialise and view.has_taint(current, view.UNINITIALIZED_TAINT):
        spec["taints"] = [taint for taint in view.taints(current) if taint["key"] != view.UNINITIALIZED_TAINT]
    if spec:
        patch["spec"] = spec
    return patch or None


class NodeController(LoopController):
    """The daemon's loop: reconciles changed nodes at once, and all periodically, because clouds send no events."""

    name = NAME
    reads_machines = True

    def __init__(self, context: ControllerContext, period: float = 300.0, status_workers: int | None = None) -> None:
        """`status_workers`: the number of concurrent writes of a full pass; None: as for any other pass."""
        super().__init__(context, COMPONENT, period=period)
        self._status_workers = status_workers

    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """See `LoopController.concerns`."""
        return new is not None and (old is None or _differs(old, new))

    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        """Run one pass; return the nodes to retry."""
        nodes = everything = self.context.nodes.items()
        if keys is not None:
            nodes = self._whole_batches([node for node in nodes if name(node) in keys])
        # A changed node is compared with the cached machine; only a full pass queries the cloud again.
        observation = observe_nodes(nodes, self.context.machines, None if keys is None else self._period, everything)
        planned = plan(observation)
        results = self.apply(planned, self._record, self._status_workers if keys is None else None)
        by_name = {name(node): node for node in nodes}
        for action in planned:
            if action.kind is ActionKind.IGNORE:
                node = by_name[action.target.removeprefix("node/")]
                self.warn(node, "NodeNotSynced", f"{action.summary}: {action.reason}")
                yield name(node)
        yield from (result.action.target.removeprefix("node/") for result in apply.failures(results))

    def _whole_batches(self, nodes: list[Object]) -> list[Object]:
        """Defer nodes that do not fill a whole batch, while thousands of nodes register."""
        new = [node for node in nodes if not node["spec"].get("providerID")]
        if len(new) <= view.BATCH:
            return nodes
        rest = {name(node) for node in new[len(new) - len(new) % view.BATCH :]}
        for key in rest:
            self.trigger(key)
        return [node for node in nodes if name(node) not in rest]

    def _record(self, result: apply.ActionResult) -> None:
        operation = result.action.operation
        if result.ok and isinstance(operation, UpdateNode) and operation.initialise:
            created = datetime.fromisoformat(operation.node["metadata"]["creationTimestamp"])
            delay = max(0.0, time.time() - created.timestamp())
            # The last write removes the taint, so upstream's two delays are equal here.
            self.context.metrics.taint_removal_delay.observe(delay)
            self.context.metrics.initial_node_sync_delay.observe(delay)


def _differs(old: Object, new: Object) -> bool:
    """Whether a field changed that this controller reads or writes. Heartbeats change none."""
    return any(look(old) != look(new) for look in _LOOKS)


_LOOKS = (
    view.addresses,
    lambda node: view.has_taint(node, view.UNINITIALIZED_TAINT),
    lambda node: node["spec"].get("providerID"),
    lambda node: node["metadata"].get("labels"),
    lambda node: node["metadata"].get("annotations"),
)


def _node_actions(node: Object, observation: NodeObservation) -> Iterator[Action]:
    target = f"node/{name(node)}"
    initialise = view.has_taint(node, view.UNINITIALIZED_TAINT)
    error = observation.errors.get(name(node))
    instance = observation.instances.get(name(node))
    if error is None and instance is not None:
        try:
            operation = _operation(node, instance, initialise)
        except InvalidConfiguration as invalid:
            error = invalid
    if error is not None:
        yield Action(ActionKind.IGNORE, target, _left(initialise), reason=str(error))
    elif instance is None:
        # The node-lifecycle controller handles initialised nodes without a machine; some the cloud leaves alone.
        if initialise and name(node) in observation.instances:
            which = view.ref(node).provider_id or f"named {name(node)} (spec.providerID is empty)"
            doubt = observation.doubts.get(name(node))
            reason = f"the cloud has no machine {which}" + (f"; {doubt}" if doubt else "")
            yield Action(ActionKind.IGNORE, target, _left(initialise), reason=reason)
    elif changes := tuple(_changes(operation)):
        what = f"initialise as {instance.type} in {instance.zone}" if initialise else "update from its machine"
        yield Action(ActionKind.UPDATE, target, what, changes, operation=operation)


def _left(initialise: bool) -> str:
    return "leave uninitialized" if initialise else "leave unchanged"


def _operation(node: Object, instance: Instance, initialise: bool) -> UpdateNode:
    labels = node["metadata"].get("labels") or {}
    annotations = node["metadata"].get("annotations") or {}
    addresses = view.merged_addresses(node, instance)
    provider_id = None if node["spec"].get("providerID") else instance.provider_id
    if initialise and provider_id == "":
        raise InvalidConfiguration(f"node {name(node)}", f"machine {instance.id} has no provider ID in the cloud")
    return UpdateNode(
        node=node,
        labels={key: value for key, value in _labels(instance, labels).items() if labels.get(key) != value},
        annotations={k: v for k, v in instance.additional_annotations.items() if annotations.get(k) != v},
        provider_id=provider_id,
        # Compared in order, so that two addresses of one type are not rewritten forever (kubernetes#73410).
        addresses=addresses if addresses and addresses != view.addresses(node) else None,
        initialise=initialise,
    )


def _labels(instance: Instance, present: Mapping[str, str]) -> dict[str, str]:
    facts = ((TYPE_LABELS, instance.type), (ZONE_LABELS, instance.zone), (REGION_LABELS, instance.region))
    # If the cloud does not report a fact, copy an existing beta label to the current one.
    known = ((keys, value or present.get(keys[1], "")) for keys, value in facts)
    labels = {key: value for keys, value in known if value for key in keys}
    additional = instance.additional_labels.items()
    return labels | {key: value for key, value in additional if not _reserved(key) and key not in present}


def _reserved(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    return bool(slash) and any(domain == known or domain.endswith(f".{known}") for known in _RESERVED_DOMAINS)


def _changes(operation: UpdateNode) -> Iterator[FieldChange]:
    node = operation.node
    if operation.provider_id:
        yield FieldChange("spec.providerID", None, operation.provider_id)
    for key, value in sorted(operation.labels.items()):
        yield FieldChange(f"metadata.labels[{key}]", (node["metadata"].get("labels") or {}).get(key), value)
    for key, wanted in sorted(operation.annotations.items()):
        yield FieldChange(f"metadata.annotations[{key}]", (node["metadata"].get("annotations") or {}).get(key), wanted)
    if operation.addresses is not None:
        yield FieldChange("status.addresses", _shown(view.addresses(node)), _shown(operation.addresses))
    if operation.initialise:
        yield FieldChange(f"spec.taints[{view.UNINITIALIZED_TAINT}]", "present", None)


def _shown(addresses: Iterable[NodeAddress]) -> list[str]:
    return [f"{address.type}={address.address}" for address in addresses]
