"""The dynamic resource CloudController: the cluster's plan in every preview, and the controllers that Pulumi runs.

`check` observes and returns the plan as the input `plan`, so that policies can read it; a hook logs it before a create
or an update, in previews too (`plan_message`). `diff` reports a change if that plan has something to do and was not
applied (`_planned`), and fails if an existing cluster's kubeconfig now leads to another cluster. `create` and `update`
observe again, apply, and wait until every declared machine is an initialised node; `read` reports drift; `delete`
removes the routes that Pulumi wrote, and waits until the daemon has removed the volumes of claims that are gone.

The engine's plugin unpickles the provider by reference: keep it importable here, without attributes, this module
light. The cloud's credentials come from the stack's config (`configure`), the cluster's from the cloud.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    UpdateResult,
)
from pulumi.output import UNKNOWN, Unknown

from . import clouds, cluster_access
from .arguments import checked
from .dynamic_provider import DynamicProvider
from .inputs import deadline_problem, is_cidr, naming_itself
from .placeholder import PlaceholderSecrets
from .plan_message import plan_hook

if TYPE_CHECKING:
    from .cluster_plan import Entry, Machine, Target, World

Properties = dict[str, Any]

DEFAULT_DEADLINE = 300.0
"""Seconds for an update to apply and to wait. Pulumi's CLI forwards no `custom_timeouts` to a dynamic provider."""

CONTROLLERS = ("node", "route", "service", "node-lifecycle", "volume")
EXECUTORS = ("daemon", "pulumi", "vendor")
_BY_PULUMI = ("node", "route")

_REQUIRED = ("cloud", "cluster_id", "network_id", "cluster_cidr", "machines", "pools", "executors", "deadline")
_COMPARED = (*_REQUIRED, "existing")
_REPLACING = ("cloud", "cluster_id", "network_id")


class CloudControllerProvider(DynamicProvider):
    """See the module. Every message that the user can act on comes from `check`."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        deadline = news.get("deadline")
        news = {
            **news,
            "deadline": DEFAULT_DEADLINE if deadline is None else deadline,
            "pools": news.get("pools") or [],
        }
        from . import cluster_plan

        if _is_open(news):
            plan = cluster_plan.not_evaluated("the inputs are not known yet")
            return CheckResult(_planned(news, _olds, plan), [])
        failures = _wrong_inputs(news)
        if news.get("existing") and _olds.get("cluster_id") and not _olds.get("existing"):
            why = "the stack made its cluster, so `cluster: existing` would delete it; use another stack for that"
            failures.append(CheckFailure("existing", why))
        if failures:
            return CheckResult(news, failures)
        target = _target(news, _olds)
        if _has_unknown(news["cluster_id"], news["network_id"], news["cluster_cidr"]):
            plan = [step.to_json() for step in cluster_plan.predict(target)]
            return CheckResult(_planned(news, _olds, plan), [])
        try:
            world = self._world(news)
            gone = cluster_plan.gone(world, target.made)
            plan = [step.to_json() for step in cluster_plan.observe_and_plan(world, target)]
        except PlaceholderSecrets as error:
            return CheckResult(_planned(news, _olds, cluster_plan.not_evaluated(str(error))), [])
        except _expected() as error:
            return CheckResult(news, [CheckFailure("", f"could not make the plan: {error}{_advice(error)}")])
        # Names no property: Pulumi's CLI would print its value, the list of all machines.
        failures = [CheckFailure("", _gone(machine, target)) for machine in gone]
        return CheckResult(_planned(news, _olds, plan), failures)

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        from .cluster_plan import is_pending

        self._require_existing_is_same(_olds, _news)
        # A state from before there were pools has none.
        olds, news = {"pools": [], **_olds}, {"pools": [], **_news}
        changed = [name for name in _COMPARED if olds.get(name) != news.get(name)]
        # The input `plan` is for display: what it still has to do counts, not that it differs from the last one.
        applied = olds.get("plan_number") == news.get("plan_number")
        pending = not applied and is_pending(news.get("plan") or [])
        # Drift that a refresh found counts as a change; the update that follows clears it.
        drifted = bool(_olds.get("drift"))
        return DiffResult(bool(changed) or pending or drifted, [name for name in changed if name in _REPLACING])

    def create(self, props: Properties) -> CreateResult:
        return CreateResult(str(props["cluster_id"]), self._converged(props, {}))

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        self._require_existing_is_same(_olds, _news)
        return UpdateResult(self._converged(_news, _olds))

    def read(self, id_: str, props: Properties) -> ReadResult:
        from cloud_controller.cloud import NotFound

        from . import cluster_plan

        try:
            world = self._world(props)
        except NotFound:
            return ReadResult(None, {})
        # What is not found in a cluster that is there is an error.
        steps = cluster_plan.observe_and_plan(world, _target(props, {}))
        return ReadResult(id_, {**props, "drift": [step.to_json() for step in steps if step.pending]})

    def delete(self, _id: str, _props: Properties) -> None:
        from cloud_controller.cloud import NotFound

        from . import cluster_plan

        try:
            self._require_same_cluster(_props)
            cloud, target = cluster_access.open_cloud(self._config, _props), _target(_props, {})
            kubeconfig = cluster_access.own_kubeconfig(self._config, _props) if target.existing else None
            cluster_plan.await_volumes(cloud, target, float(_props["deadline"]), _report, kubeconfig)
            cluster_plan.tear_down(cloud, target)
        except NotFound:
            return  # The network is gone, and its route table with it.

    def _converged(self, news: Properties, olds: Properties) -> Properties:
        """Apply, wait, and the outputs then."""
        from cloud_controller.cloud import node_name

        from . import cluster_plan

        world = self._world(news)
        applied = cluster_plan.converge(world, _target(news, olds), float(news["deadline"]), _report)
        names = [node_name(machine["name"]) for machine in news["machines"]]
        return {**news, "nodes": names, "applied": applied, "drift": [], "cluster_uid": cluster_plan.identity(world)}

    def _require_existing_is_same(self, olds: Properties, news: Properties) -> None:
        """Raise `ForeignCluster` if the kubeconfig of an existing cluster now leads to another one.

        Not in `check`: the engine gives it the old inputs, and the UID is an output. By `diff`, previews fail too.
        """
        uid = olds.get("cluster_uid")
        # Ids that change replace the resource: another cluster is meant.
        if not uid or not news.get("existing") or any(olds.get(name) != news.get(name) for name in _REPLACING):
            return
        from . import cluster_plan

        # A preview without secrets reaches no cluster.
        with suppress(PlaceholderSecrets):
            cluster_plan.require_same_cluster(self._world(news), uid)

    def _require_same_cluster(self, props: Properties) -> None:
        from cloud_controller.cloud import CloudError, ForeignCluster
        from cloud_controller.kube import KubeconfigError

        from . import cluster_plan

        # A state from before there was this output has none.
        if uid := props.get("cluster_uid"):
            try:
                cluster_plan.require_same_cluster(self._world(props), uid)
            except ForeignCluster:
                raise
            except (CloudError, KubeconfigError):
                return  # The cluster is gone or gives no access: its UID cannot be compared.

    def _world(self, props: Properties) -> World:
        from .cluster_plan import World

        own = cluster_access.own_kubeconfig(self._config, props)
        return World.open(props["cloud"], self._cloud_config(props), own)

    def _cloud_config(self, props: Properties) -> str:
        return cluster_access.cloud_config(self._config, props)


def _report(text: str) -> None:
    # The engine shows what the provider's process prints while the step runs; a provider has no other way to log.
    print(f"CloudController: {text}", flush=True)


class MachineArgs(TypedDict):
    """A declared machine."""

    name: pulumi.Input[str]
    """Its host name, of which its kubelet makes the node's name: in lower case."""
    provider_id: NotRequired[pulumi.Input[str]]
    """What the node's `spec.providerID` will be; unknown until the machine is made. An existing one needs none."""


class PoolArgs(TypedDict):
    """Machines that the cloud names itself: a scaling group's."""

    name: pulumi.Input[str]
    """The value of their nodes' label `cloud-controller/pool`."""
    count: pulumi.Input[int]
    """The least number of nodes."""


class CloudController(Resource, module="cloudcontroller", name="CloudController"):
    """The cloud controllers' work on a cluster, planned in previews; type `…dynamic/cloudcontroller:CloudController`.

    Depends on the machines and the CCM (`opts.depends_on`); what runs in the cluster depends on it.

    `existing`: the cluster is not the program's. Then the stack's config has its kubeconfig, and a destroy leaves
    routes, and volumes that claims hold: the cluster still uses them.
    """

    # Loosely typed: the SDK checks what an older state holds against these.
    plan: pulumi.Output[Any]
    """The actions that `check` found, in order; for display and for policies."""
    nodes: pulumi.Output[Any]
    """The initialised nodes: all declared ones."""
    applied: pulumi.Output[Any]
    """The actions of the last update, a line each."""
    drift: pulumi.Output[Any]
    """The differences that the last refresh found; empty after an update."""
    cluster_uid: pulumi.Output[Any]
    """The UID of namespace kube-system, by which a destroy checks that it reaches this cluster."""

    @naming_itself
    def __init__(
        self,
        resource_name: str,
        *,
        cloud: pulumi.Input[str],
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        cluster_cidr: pulumi.Input[str],
        machines: Sequence[MachineArgs],
        executors: Mapping[str, pulumi.Input[str]],
        pools: Sequence[PoolArgs] = (),
        existing: bool = False,
        deadline: pulumi.Input[float] = DEFAULT_DEADLINE,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "cloud": cloud,
            "cluster_id": cluster_id,
            "network_id": network_id,
            "cluster_cidr": cluster_cidr,
            "machines": [checked(MachineArgs, each, f"machines[{index}]") for index, each in enumerate(machines)],
            "pools": [checked(PoolArgs, each, f"pools[{index}]") for index, each in enumerate(pools)],
            "executors": executors,
            "deadline": deadline,
            # None is no input: states from before there was this one do not change.
            "existing": existing or None,
        }
        outputs = dict.fromkeys(("plan", "nodes", "applied", "drift", "cluster_uid"))
        hook = plan_hook(resource_name)
        shown = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook]))
        merged = pulumi.ResourceOptions.merge(shown, opts)
        super().__init__(CloudControllerProvider(), resource_name, {**props, **outputs}, merged)


def _is_open(news: Properties) -> bool:
    """Whether the declared machines are not known yet: then there is nothing to plan or to check."""
    if _has_unknown(*(news.get(name) for name in ("cloud", "machines", "pools", "executors", "deadline"))):
        return True
    machines, pools, executors = news.get("machines") or [], news.get("pools") or [], news.get("executors") or {}
    if _has_unknown(*machines, *pools, *executors.values()):
        return True
    return _has_unknown(*(m["name"] for m in machines), *(value for pool in pools for value in pool.values()))


def _planned(news: Properties, olds: Properties, plan: list[Entry]) -> Properties:
    """The inputs with the plan and the number of the last plan that had something to do.

    The outputs have the number of the plan that was applied. A refresh compares them with the inputs of the last
    update, whose plan has been applied: without the number it would be pending for ever.
    """
    from .cluster_plan import is_pending

    number = int(olds.get("plan_number") or 0)  # a state from before there was a number has none
    return {**news, "plan": plan, "plan_number": number + is_pending(plan)}


def _wrong_inputs(news: Properties) -> list[CheckFailure]:
    """What is wrong with the known inputs."""
    from cloud_controller.cloud import node_name

    failures: list[CheckFailure] = []

    def refuse(name: str, why: str) -> None:
        failures.append(CheckFailure(name, why))

    for name in _REQUIRED:
        if news.get(name) is None:
            refuse(name, "is missing")
    if failures:
        return failures
    if news["cloud"] not in clouds.names():
        refuse("cloud", f"{news['cloud']!r} is not a known cloud; allowed: {', '.join(clouds.names())}")
    if not _has_unknown(news["cluster_cidr"]) and not is_cidr(news["cluster_cidr"]):
        refuse(
            "cluster_cidr", f"{news['cluster_cidr']!r}; allowed: an IPv4 range such as 10.4.0.0/16, without host bits"
        )
    if wrong := deadline_problem(news["deadline"]):
        refuse("deadline", wrong)
    for index, pool in enumerate(news["pools"]):
        if not isinstance(pool["count"], int | float) or pool["count"] < 0:
            refuse(f"pools[{index}].count", f"{pool['count']!r}; allowed: a number of at least 0")
    for controller, executor in news["executors"].items():
        if controller not in CONTROLLERS:
            refuse(f"executors.{controller}", f"is not a controller; allowed: {', '.join(CONTROLLERS)}")
        elif executor not in EXECUTORS:
            refuse(f"executors.{controller}", f"{executor!r}; allowed: {', '.join(EXECUTORS)}")
        elif executor == "pulumi" and controller not in _BY_PULUMI:
            refuse(f"executors.{controller}", f"{executor!r}; allowed: daemon (pulumi runs only node and route)")
    names = [node_name(machine["name"]) for machine in news["machines"]]
    for index, name in enumerate(names):
        if name in names[:index]:
            refuse(f"machines[{index}].name", f"node name {name!r} appears twice; allowed: unique names, in any case")
    return failures


def _target(news: Properties, olds: Properties) -> Target:
    """The declared state; machines that only the old inputs have are to be removed, unless the cluster is existing."""
    from cloud_controller.cloud import node_name

    from .cluster_plan import Machine, Pool, Target

    def known(value: Any) -> str | None:
        return None if _has_unknown(value) else str(value)

    machines = tuple(Machine(node_name(str(m["name"])), known(m.get("provider_id", UNKNOWN))) for m in news["machines"])
    names = {machine.name for machine in machines}
    existing = bool(news.get("existing"))
    # A name that is taken out of an existing cluster's list ends nothing: the machine is not the program's.
    before = () if existing else olds.get("machines") or ()
    removed = frozenset(node_name(str(m["name"])) for m in before) - names
    cidr = "" if _has_unknown(news["cluster_cidr"]) else str(news["cluster_cidr"])
    pools = tuple(Pool(str(pool["name"]), int(pool["count"])) for pool in news.get("pools") or [])
    return Target(cidr, machines, dict(news["executors"]), removed, pools, existing)


def _has_unknown(*values: Any) -> bool:
    return any(isinstance(value, Unknown) for value in values)


def _gone(machine: Machine, target: Target) -> str:
    if target.existing:
        return f"machine {machine.name} is not in the cloud; allowed: names of nodes of the cluster"
    advice = "no longer exists in the cloud: run `refresh`, then `up` to create it again"
    return f"machine {machine.name} ({machine.provider_id}) {advice}"


def _advice(error: Exception) -> str:
    from cloud_controller.cloud import NotFound

    return (
        "; if it was deleted by hand, run `refresh`, then `up` to create it again"
        if isinstance(error, NotFound)
        else ""
    )


def _expected() -> tuple[type[Exception], ...]:
    """The errors to expect while planning: no access, no answer, a wrong config."""
    from cloud_controller.cloud import CloudError
    from cloud_controller.kube import ApiError, KubeconfigError

    return (CloudError, ApiError, KubeconfigError)
