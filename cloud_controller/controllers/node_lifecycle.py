"""Deletes nodes whose machine is gone, and taints nodes whose machine is stopped until they are Ready again.

Queries only nodes that are not Ready, in one batch. A NODE DELETED BY MISTAKE TAKES ITS PODS WITH IT: cloud errors
change nothing, and a machine counts as gone only if the cloud reports it twice, the second time not from a list. Of a
node without provider ID, whose name may just not be its machine's, the addresses and the machines without nodes count
too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cloud_controller import apply
from cloud_controller.cloud import CloudError, Instance, InstanceState
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.instance_snapshot import NOT_ANCHORED, InstanceSnapshot
from cloud_controller.controllers.loop import ControllerContext, LoopController
from cloud_controller.kube import NODES, ConflictError, KubeApi, NotFoundError, Object, name, uid
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan, hold

NAME = "node-lifecycle"
COMPONENT = "cloud-node-lifecycle-controller"
"""The source of its events (upstream's name)."""

_EFFECT = "NoSchedule"
_GRACE_UNSEEN = 60.0
"""Seconds that a machine must be missing that was never seen by ID: names are found in lists, which may lag, and an
eventually consistent cloud may deny the machine of a node that has just joined."""


@dataclass(frozen=True, slots=True)
class NodeLifecycleOptions:
    """`grace`: seconds that a machine must be missing before its node is deleted. `removed`: names of nodes to delete
    because their machines are about to be removed."""

    grace: float = 0.0
    removed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeLifecycleObservation:
    """Nodes, and the machine (None: confirmed gone) or error of each node that is not Ready.

    - `missing`: for how many seconds each machine has been known to be gone (default: 0).
    - `anchored`: at least one Node has a machine of this cluster (`InstanceSnapshot.anchored`); otherwise deletions
      are held.
    - `doubts`: why nodes may have a machine that is not called as they are (`InstanceSnapshot.doubts`); they stay.
    """

    nodes: tuple[Object, ...]
    instances: Mapping[str, Instance | None]
    errors: Mapping[str, CloudError] = field(default_factory=dict)
    missing: Mapping[str, float] = field(default_factory=dict)
    anchored: bool = True
    doubts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """Delete this node by UID, never a later node with the same name."""

    node: Object
    why: str


@dataclass(frozen=True, slots=True)
class SetShutdownTaint:
    """Add the shutdown taint, or remove it."""

    node: Object
    present: bool


def observe(kube: KubeApi, machines: InstanceSnapshot) -> NodeLifecycleObservation:
    """Every node, and the machines of those that are not Ready."""
    return observe_nodes(kube.list(NODES).items, machines)


def observe_nodes(
    nodes: Iterable[Object], machines: InstanceSnapshot, among: Iterable[Object] | None = None
) -> NodeLifecycleObservation:
    """The machines of these nodes if they are not Ready. `among`: all nodes (None: these are all).

    Raises `CloudError`.
    """
    nodes = tuple(nodes)
    described = machines.describe_surely(node for node in nodes if not view.is_ready(node))
    everything = nodes if among is None else tuple(among)
    instances, errors = described = machines.exclusive(described, everything)
    anchored = None not in instances.values() or machines.anchored(everything)
    doubts = machines.doubts(described, nodes, everything)
    return NodeLifecycleObservation(nodes, instances, errors, anchored=anchored, doubts=doubts)


def plan(observation: NodeLifecycleObservation, options: NodeLifecycleOptions = NodeLifecycleOptions()) -> Plan:
    """One action for each node to delete or whose taint changes."""
    ordered = sorted(observation.nodes, key=name)
    return Plan.of(action for node in ordered for action in _node_actions(node, observation, options))


@apply.performs(DeleteNode)
def delete_node(operation: DeleteNode, run: apply.Run) -> None:
    """Emit the event before the deletion, while the object exists."""
    node = operation.node
    run.events.normal(node, "DeletingNode", f"Deleting node {name(node)} because {operation.why}")
    try:
        run.kube.delete(NODES, name(node), uid=uid(node))
    except NotFoundError:
        return
    except ConflictError:  # This node is gone; another one has its name now.
        return


@apply.performs(SetShutdownTaint)
def set_shutdown_taint(operation: SetShutdownTaint, run: apply.Run) -> None:
    """Change only the shutdown taint."""
    view.patch_node(run.kube, operation.node, lambda current: patch_of(operation, current))


def patch_of(operation: SetShutdownTaint, current: Object) -> Object | None:
    """The merge patch that adds or removes the taint; None if nothing changes."""
    if view.has_taint(current, view.SHUTDOWN_TAINT) == operation.present:
        return None
    taints = [taint for taint in view.taints(current) if taint["key"] != view.SHUTDOWN_TAINT]
    if operation.present:
        taints.append({"key": view.SHUTDOWN_TAINT, "effect": _EFFECT})
    return {"spec": {"taints": taints}}


class NodeLifecycleController(LoopController):
    """The daemon's loop: reconciles when a node's readiness changes, and every `period` seconds."""

    name = NAME

    def __init__(
        self,
        context: ControllerContext,
        period: float = 5.0,
        options: NodeLifecycleOptions = NodeLifecycleOptions(),
    ) -> None:
        super().__init__(context, COMPONENT, period=period)
        self._options = options
        self._missing_since: dict[str, float] = {}

    def concerns(self, old: Object | None, new: Object | None) -> bool:
        """See `LoopController.concerns`. New nodes do not matter: their machine has just registered them."""
        return old is not None and new is not None and view.is_ready(old) != view.is_ready(new)

    def reconcile(self, keys: frozenset[str] | None) -> Iterable[str]:
        """Run one pass; it makes no cloud call while every node is Ready."""
        everything = self.context.nodes.items()
        nodes = [node for node in everything if keys is None or name(node) in keys]
        observation = observe_nodes(nodes, self.context.machines, everything)
        missing = self._missing(observation, everything=keys is None)
        about = None if keys is None else {f"node/{key}" for key in keys}
        planned = plan(replace(observation, missing=missing), self._options)
        results = self.apply(planned, about=about)
        for result in apply.failures(results):
            if isinstance(result.action.operation, DeleteNode):
                self.events.warning(result.action.operation.node, "DeletingNodeFailed", str(result.error))
        for node in nodes:
            # Before, its machine may be one that the cloud does not list yet.
            if (doubt := observation.doubts.get(name(node))) and missing.get(name(node), 0.0) >= _GRACE_UNSEEN:
                self.warn(node, "NotDeletingNode", _doubted(node, doubt))
        return [result.action.target.removeprefix("node/") for result in apply.failures(results)]

    def _missing(self, observation: NodeLifecycleObservation, *, everything: bool) -> dict[str, float]:
        """For how long each missing machine has been known to be gone, since this process started."""
        now = time.monotonic()
        missing: dict[str, float] = {}
        for node in observation.nodes:
            if name(node) in observation.errors:
                continue  # An error neither starts nor stops the grace period.
            if observation.instances.get(name(node), node) is None:
                missing[name(node)] = now - self._missing_since.setdefault(uid(node), now)
            else:
                self._missing_since.pop(uid(node), None)
        if everything:
            present = {uid(node) for node in observation.nodes}
            self._missing_since = {of: since for of, since in self._missing_since.items() if of in present}
        return missing


def _node_actions(
    node: Object, observation: NodeLifecycleObservation, options: NodeLifecycleOptions
) -> Iterator[Action]:
    target = f"node/{name(node)}"
    tainted = view.has_taint(node, view.SHUTDOWN_TAINT)
    if name(node) in options.removed:
        yield _deletion(node, "its machine is being removed")
    elif view.is_ready(node):
        if tainted:
            yield _tainting(node, False)
    elif error := observation.errors.get(name(node)):
        yield Action(ActionKind.IGNORE, target, "not ready; leave unchanged", reason=str(error))
    elif name(node) in observation.instances:
        instance = observation.instances[name(node)]
        if instance is None:
            missing = observation.missing.get(name(node), 0.0)
            seen = node["spec"].get("providerID") and not view.has_taint(node, view.UNINITIALIZED_TAINT)
            grace = max(options.grace, 0.0 if seen else _GRACE_UNSEEN)
            if doubt := observation.doubts.get(name(node)):
                yield Action(ActionKind.IGNORE, target, "not ready; keep", reason=_doubted(node, doubt))
            elif missing >= grace:
                deletion = _deletion(node, "it does not exist in the cloud provider")
                yield from [deletion] if observation.anchored else hold([deletion], uid(node), NOT_ANCHORED)
            else:
                reason = f"its machine has been missing for {missing:.0f} s; deleted after {grace:g} s"
                yield Action(ActionKind.IGNORE, target, "not ready; keep for now", reason=reason)
        elif instance.state is InstanceState.STOPPED and not tainted:
            yield _tainting(node, True)


def _doubted(node: Object, doubt: str) -> str:
    return f"the cloud has no machine named {name(node)} (spec.providerID is empty); {doubt}"


def _deletion(node: Object, why: str) -> Action:
    return Action(
        ActionKind.DELETE, f"node/{name(node)}", "delete the node", reason=why, operation=DeleteNode(node, why)
    )


def _tainting(node: Object, present: bool) -> Action:
    change = FieldChange(
        f"spec.taints[{view.SHUTDOWN_TAINT}]", None if present else _EFFECT, _EFFECT if present else None
    )
    summary = "add shutdown taint: its machine is stopped" if present else "remove shutdown taint: the node is ready"
    return Action(
        ActionKind.UPDATE, f"node/{name(node)}", summary, (change,), operation=SetShutdownTaint(node, present)
    )
