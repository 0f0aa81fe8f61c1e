"""Plans and applies what a cluster lacks until its declared machines are initialised nodes with routes.

The rules are the controllers' own (`cloud_controller.controllers`); this module decides who applies each plan. Actions
of the daemon are planned and reported, some of them awaited, and never applied here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from cloud_controller import apply, clouds, rbac
from cloud_controller.binding import NOTHING, Binding
from cloud_controller.cleanup import GoneCluster
from cloud_controller.cloud import Cloud, CloudError, ForeignCluster, Instance, InstanceRef
from cloud_controller.controllers import node, node_lifecycle, route
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.volume import controller as volume
from cloud_controller.events import EventRecorder
from cloud_controller.kube import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    ApiError,
    Kube,
    KubeApi,
    Object,
    name,
    uid,
)
from cloud_controller.load_balancers.model import CLUSTER_TAG
from cloud_controller.plan import Action, ActionKind, Plan
from cloud_controller.proof import prove
from cloud_controller.retries import round_pause, worth_another_round
from cloud_controller.safeguard import Safeguard, cluster_uid, verify
from cloud_controller.volumes import CLAIM_TAG, CLAIM_UID_TAG, Volume

DAEMON = "daemon"
PULUMI = "pulumi"
VENDOR = "vendor"
"""The cloud's maker runs the controller: its actions are neither planned nor awaited."""
POOL_LABEL = "cloud-controller/pool"
"""The label that names a node's pool."""
COMPONENT = "pulumi-cloud-controller"
"""The source of the events that are written while Pulumi runs a controller."""

Entry = dict[str, Any]
"""An action's JSON form with two keys more: `executor`, and `awaited` where an update waits for the daemon to do it."""

_APPLIED = (node.NAME, route.NAME)
"""The controllers that Pulumi may run."""
_VOLUMES_PAUSE = 0.5
_SILENT_SECONDS = 10.0
"""How long a wait stays silent: machines boot, volumes detach."""

Report = Callable[[str], None]
"""Gets a line about the progress."""


def _silent(line: str) -> None:
    del line


class NotConverged(Exception):
    """The cluster did not reach the declared state; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the program. `provider_id` None: it does not exist yet, or it is an existing cluster's."""

    name: str
    provider_id: str | None


@dataclass(frozen=True, slots=True)
class Pool:
    """Machines of the program that the cloud names: as many nodes with this value of POOL_LABEL, or more."""

    name: str
    count: int

    def missing(self, nodes: Iterable[Object]) -> int:
        """How many of its machines have not registered."""
        return max(0, self.count - sum(_pool_of(node) == self.name for node in nodes))


@dataclass(frozen=True, slots=True)
class Target:
    """The declared state of a cluster. `removed`: machines that the program no longer has; they are deleted afterwards.

    `executors` names who runs each controller: `daemon` (the default), `pulumi` or `vendor`. `existing`: the cluster
    is not the program's and stays when the program's resources are deleted.
    """

    cluster_cidr: str
    machines: tuple[Machine, ...]
    executors: Mapping[str, str]
    removed: frozenset[str] = frozenset()
    pools: tuple[Pool, ...] = ()
    existing: bool = False

    def names(self, nodes: Iterable[Object] = ()) -> frozenset[str]:
        """The names of the declared machines, and so of their nodes; of pools, those that are among `nodes`."""
        pools = {pool.name for pool in self.pools}
        of_pools = (name(node) for node in nodes if _pool_of(node) in pools)
        return frozenset(machine.name for machine in self.machines) | frozenset(of_pools)

    @property
    def made(self) -> list[Machine]:
        """The machines that must exist by now."""
        return [machine for machine in self.machines if machine.provider_id or self.existing]

    def executor(self, controller: str) -> str:
        """Who runs this controller."""
        return self.executors.get(controller, DAEMON)


@dataclass(frozen=True, slots=True)
class World:
    """Clients of a cluster and its cloud."""

    kube: KubeApi
    cloud: Cloud

    @classmethod
    def open(cls, cloud_name: str, cloud_config: str, kubeconfig: str | None = None) -> World:
        """Reach the cloud with this config, the cluster with the access that it gives, or this. Raises `CloudError`."""
        cloud = clouds.load(cloud_name, cloud_config)
        return cls(Kube.from_kubeconfig(kubeconfig or cloud.cluster_access()), cloud)


@dataclass(frozen=True, slots=True)
class Step:
    """An action, the controller and the executor it belongs to, and whether an update waits for it."""

    action: Action
    controller: str
    executor: str
    awaited: bool = False

    @property
    def pending(self) -> bool:
        """Whether there is something to apply or to wait for."""
        return self.action.pending and (self.executor == PULUMI or self.awaited)

    def to_json(self) -> Entry:
        """The form that the resource's `plan` has."""
        entry: Entry = {**_without_nulls(self.action.to_json()), "executor": self.executor}
        if self.executor == DAEMON:
            entry["summary"] += ", by the daemon"
        return {**entry, "awaited": True} if self.awaited else entry


def is_pending(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a plan, in its JSON form, has something to apply or to wait for."""
    return any(
        entry["kind"] != ActionKind.IGNORE
        and not entry.get("held")
        and (entry.get("executor") == PULUMI or bool(entry.get("awaited")))
        for entry in entries
    )


def not_evaluated(why: str) -> list[Entry]:
    """The plan of a run that cannot observe the cluster."""
    return [Action(ActionKind.IGNORE, "cluster", "not evaluated", reason=why).to_json()]


def predict(target: Target) -> list[Step]:
    """The plan for a cluster that does not exist yet: what will happen to each declared machine."""
    names = sorted(target.names())
    nodes = _steps(node.NAME, node.plan_assumed(names), target) + _unregistered(target, ())
    return nodes + _steps(route.NAME, route.plan_assumed(names), target)


def gone(world: World, machines: Sequence[Machine]) -> list[Machine]:
    """The machines that the cloud does not have; asked for by name where the provider ID is None."""
    refs = {InstanceRef(machine.name, machine.provider_id): machine for machine in machines}
    found: dict[InstanceRef, Instance | None] = {}
    asked = list(refs)
    for start in range(0, len(asked), view.BATCH):
        found.update(world.cloud.instances.describe(asked[start : start + view.BATCH]))
    return [machine for ref, machine in refs.items() if found[ref] is None]


def observe_and_plan(world: World, target: Target) -> list[Step]:
    """Observe the cluster and its cloud once, and plan what is left to do.

    Raises `ForeignCluster` if an existing cluster's kubeconfig leads to another cluster than the cloud config.
    """
    nodes = tuple(world.kube.list(NODES).items)
    declared = target.names(nodes)
    machines = InstanceSnapshot(world.cloud.instances)
    if target.existing:
        # The kubeconfig is the stack's. Otherwise the cloud itself gives the access to the cluster with this id.
        binding = Binding(cluster_uid(world.kube))
        try:
            prove((), lambda: nodes, world.cloud, machines, (target.cluster_cidr,), binding)
        except ForeignCluster as error:
            # The daemon's advice is an option, which a program has not.
            raise ForeignCluster(
                f"the stack's kubeconfig leads to an API server (UID {binding.uid}) none of whose Nodes has a machine "
                f"or route that the cloud shows of cluster {world.cloud.cluster_id}: correct `kubeconfig`, or the "
                "cluster and credentials of the cloud config. Only if both are right (all machines were replaced), "
                "delete the Nodes whose machines are gone: `kubectl delete node NAME`. `cloud-controller plan "
                f"--moved-from-cluster={NOTHING}` shows the cluster meanwhile"
            ) from error
    seen = node.observe_nodes(nodes, machines)
    steps = _steps(node.NAME, node.plan(seen, node.NodeOptions(declared=declared)), target, nodes)
    steps += _unregistered(target, nodes) + _foreign_nodes(nodes, target)
    if world.cloud.routes is not None and target.executor(route.NAME) != VENDOR:
        table = route.observe_nodes(nodes, world.cloud, machines)
        options = route.RouteOptions((target.cluster_cidr,), declared=declared, removed=target.removed)
        # The node-lifecycle controller will delete a node whose machine is gone: no condition to set on it.
        lost = {f"node/{name(n)}/network-unavailable" for n in nodes if seen.instances.get(name(n), n) is None}
        found = _safeguard(world).released(route.plan(table, options))
        kept = Plan.of(action for action in found if action.target not in lost)
        # Registered, but kube-controller-manager has not given them their pod range yet: their routes still follow.
        waiting = [name(n) for n in nodes if name(n) in declared and not view.pod_cidrs(n)]
        steps += _steps(route.NAME, kept + route.plan_assumed(waiting), target)
    lifecycle = node_lifecycle.observe_nodes(nodes, machines)
    removed = node_lifecycle.NodeLifecycleOptions(removed=target.removed)
    return steps + _steps(node_lifecycle.NAME, node_lifecycle.plan(lifecycle, removed), target)


def converge(world: World, target: Target, deadline: float, report: Report = _silent) -> list[str]:
    """Apply what Pulumi runs and wait for the rest, at most `deadline` seconds; what was applied, a line each.

    Reports a long wait. Raises `NotConverged`: at the deadline with what is missing, or at once with the first error
    that no repetition will mend.
    """
    end = time.monotonic() + deadline
    idle = 0
    applied: list[str] = []
    steps: list[Step] = []
    wait = Wait(report)
    events = EventRecorder(world.kube, COMPONENT)
    try:
        while True:
            steps = observe_and_plan(world, target)
            done, failed = _apply(world, steps, events)
            applied += done
            missing = [step for step in steps if step.pending]
            if not missing:
                return applied
            if time.monotonic() > end:
                raise NotConverged(f"did not converge within {deadline:g} s; still to do: {_missing(missing, failed)}")
            idle = 0 if done else idle + 1
            if idle:
                wait.for_(_missing(missing, failed))
                time.sleep(min(round_pause(idle), max(0.0, end - time.monotonic())))
    finally:
        events.close()
        ours = [name for name in _APPLIED if target.executor(name) == PULUMI]
        if steps and ours:
            _safeguard(world).record({name: [s.action for s in steps if s.controller == name] for name in ours})


def identity(world: World) -> str:
    """The UID that identifies the Kubernetes cluster."""
    return cluster_uid(world.kube)


def require_same_cluster(world: World, cluster_uid: str) -> None:
    """Raise `ForeignCluster` if the API server that answers is another cluster's. No answer raises nothing.

    DANGER: with the kubeconfig of another cluster, that cluster's volumes and routes would be deleted as leftovers.
    """
    try:
        verify(world.kube, Binding(cluster_uid))
    except ApiError:
        return


def tear_down(cloud: Cloud, target: Target) -> int:
    """Remove the routes that the cluster owns, where Pulumi runs the route controller; how many there were.

    An existing cluster keeps them: its pods still need them.
    """
    if target.existing or cloud.routes is None or target.executor(route.NAME) != PULUMI:
        return 0
    plan = route.plan_teardown(route.observe_table(cloud), route.RouteOptions((target.cluster_cidr,)))
    kube = GoneCluster()  # Nothing of the cluster is read or written any more: it goes next.
    results = apply.run(plan, kube, cloud, events=EventRecorder(kube, COMPONENT), controller=route.NAME)
    if failed := [*apply.failures(results)]:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise NotConverged(f"could not delete {failed[0]}{more}")
    return len(results)


def await_volumes(
    cloud: Cloud, target: Target, deadline: float, report: Report = _silent, kubeconfig: str | None = None
) -> None:
    """Wait until the daemon has removed the volumes of claims that are gone: the daemon is deleted next.

    Volumes to keep (policy Retain, or without a PersistentVolume) do not block, and in an existing cluster neither do
    those of claims. Reports a long wait. Raises NotConverged at the deadline, if claims still hold volumes, and if the
    PersistentVolumes cannot be read. `kubeconfig`: of a cluster that the cloud gives no access to.
    """
    if cloud.volumes is None or volume.NAME not in target.executors:
        return
    end = time.monotonic() + deadline
    wait = Wait(report)
    while mine := [each for each in cloud.volumes.list() if each.belongs_to(cloud.cluster_id)]:
        pvs, claims = _storage_objects(cloud, mine, kubeconfig)
        waiting, held = volume.leaving(mine, pvs, claims)
        if held and not target.existing:
            advice = "delete the claims and the pods that use them, or set the PersistentVolumes' policy to Retain"
            raise NotConverged(f"claims still hold volumes: {', '.join(held)}; {advice}")
        if not waiting:
            return
        if time.monotonic() > end:
            raise NotConverged(f"the daemon did not delete {_listed(waiting, claims)} within {deadline:g} s")
        wait.for_(f"the daemon to delete {_listed(waiting, claims)}")
        time.sleep(_VOLUMES_PAUSE)


def _storage_objects(
    cloud: Cloud, mine: Iterable[Volume], kubeconfig: str | None
) -> tuple[Sequence[Object], Sequence[Object]]:
    """The cluster's PersistentVolumes and claims. Raises NotConverged with advice about its volumes."""
    try:
        with closing(Kube.from_kubeconfig(kubeconfig or cloud.cluster_access())) as kube:
            return kube.list(PERSISTENT_VOLUMES).items, kube.list(PERSISTENT_VOLUME_CLAIMS).items
    except (ApiError, CloudError) as error:
        advice = f"delete them, or remove the tag {CLUSTER_TAG} from those to keep"
        raise NotConverged(
            f"could not read the cluster's PersistentVolumes ({error}), so these would be left behind: "
            f"{_listed(mine)}; {advice}"
        ) from None


def _listed(volumes: Iterable[Volume], claims: Iterable[Object] = ()) -> str:
    """The volumes with their claims, and what holds them; an existing claim waits for its pods to end."""
    used = {uid(claim) for claim in claims}

    def words(each: Volume) -> str:
        text = f"volume {each.id} of {each.tags.get(CLAIM_TAG, '?')}"
        if each.tags.get(CLAIM_UID_TAG) in used:
            return f"{text} (pods still use it)"
        return f"{text} (still attached)" if each.attachments else text

    return ", ".join(map(words, volumes))


def _foreign_nodes(nodes: Iterable[Object], target: Target) -> list[Step]:
    """Nodes that have a declared machine's name and another machine's provider ID, which is immutable."""
    declared = {machine.name: machine.provider_id for machine in target.machines if machine.provider_id}
    steps = []
    for each in nodes:
        wanted, found = declared.get(name(each)), each["spec"].get("providerID")
        if wanted and found and found != wanted:
            summary = f"must be deleted so that {wanted} can register: it is the node of {found}"
            action = Action(ActionKind.DELETE, f"node/{name(each)}", summary)
            steps.append(Step(action, node_lifecycle.NAME, DAEMON, awaited=True))
    return steps


def _unregistered(target: Target, nodes: Sequence[Object]) -> list[Step]:
    """What an update awaits of pools whose machines have not all registered."""
    executor = target.executor(node.NAME)
    if executor == VENDOR:
        return []
    actions = [
        Action(ActionKind.UPDATE, f"pool/{pool.name}", f"initialise {missing} after registration", assumed=True)
        for pool in target.pools
        if (missing := pool.missing(nodes))
    ]
    return [Step(action, node.NAME, executor, awaited=executor == DAEMON) for action in actions]


def _pool_of(node: Object) -> str | None:
    pool = (node["metadata"].get("labels") or {}).get(POOL_LABEL)
    return str(pool) if pool is not None else None


def _without_nulls(value: Any) -> Any:
    # The dynamic provider's server loses nulls inside of values, so a refresh would show them as differences.
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _steps(controller: str, plan: Plan, target: Target, nodes: Sequence[Object] = ()) -> list[Step]:
    executor = target.executor(controller)
    if executor == VENDOR:
        return []
    uninitialised = {name(n) for n in nodes if view.has_taint(n, view.UNINITIALIZED_TAINT)}
    declared = target.names(nodes)

    def awaited(action: Action) -> bool:
        of = action.target.removeprefix("node/")
        waits = controller == node.NAME and executor == DAEMON and of in declared
        return waits and (action.assumed or of in uninitialised)

    return [Step(action, controller, executor, awaited(action)) for action in plan]


def _apply(
    world: World, steps: Sequence[Step], events: EventRecorder
) -> tuple[list[str], dict[str, apply.ActionError]]:
    """Apply Pulumi's actions, controller by controller; returns what was done, and transient errors by target."""
    done: list[str] = []
    failed: dict[str, apply.ActionError] = {}
    for controller in _APPLIED:
        mine = [s.action for s in steps if s.controller == controller and s.executor == PULUMI and not s.action.assumed]
        results = apply.run(Plan.of(mine), world.kube, world.cloud, events=events, controller=controller)
        _safeguard(world).used(Plan.of(mine), [result.action for result in results if result.ok])
        for result in results:
            if result.error is None:
                done.append(str(result.action))
            elif worth_another_round(result.error):
                failed[result.action.target] = result.error
            else:
                raise NotConverged(f"{result.action.target}: {result.error}")
    return done, failed


def _safeguard(world: World) -> Safeguard:
    return Safeguard(world.kube, rbac.LEASE_NAMESPACE, rbac.LEASE_NAME)


class Wait:
    """Reports what a wait is for: once it has taken a while, and then whenever that changes."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._started = time.monotonic()
        self._reported = ""

    def for_(self, what: str) -> None:
        """Still waiting for this."""
        if what != self._reported and time.monotonic() - self._started >= _SILENT_SECONDS:
            self._report(f"waiting for {what}")
            self._reported = what


def _missing(steps: Sequence[Step], failed: Mapping[str, Exception]) -> str:
    def line(step: Step) -> str:
        error = failed.get(step.action.target)
        by = "" if step.executor == PULUMI else " (by the daemon)"
        return f"{step.action.target}: {step.action.summary}{by}" + (f": {error}" if error else "")

    shown = "; ".join(line(step) for step in steps[:5])
    more = f"; and {len(steps) - 5} more" if len(steps) > 5 else ""
    return shown + more
