"""Observes and plans once for one controller: for the command line and the dry run.

The daemon's loops observe through their caches instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from cloud_controller.binding import UNBOUND, Evidence
from cloud_controller.cloud import Cloud, InvalidConfiguration
from cloud_controller.controllers import node, node_lifecycle, route
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.service import controller as service
from cloud_controller.controllers.service import plan as service_plan
from cloud_controller.controllers.service import rules as service_rules
from cloud_controller.controllers.volume import controller as volume
from cloud_controller.controllers.volume import operations as volume_operations
from cloud_controller.kube import KubeApi, Object
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.sharing import owner_of_part
from cloud_controller.plan import Action, ActionKind, Attention, Plan, object_of
from cloud_controller.safeguard import Safeguard

_CONCURRENT = 8
"""Calls for the health of load balancers at a time."""

Health = Mapping[tuple[str, str, int], bool]
"""Whether members are healthy, by pool, address and port; those of unknown health are absent."""


@dataclass(frozen=True)
class PlanSettings:
    """The options that plans depend on; only controller `route` requires `route`."""

    route: route.RouteOptions | None = None
    service: service.ServiceOptions = field(default_factory=service.ServiceOptions)
    lifecycle: node_lifecycle.NodeLifecycleOptions = field(default_factory=node_lifecycle.NodeLifecycleOptions)
    safeguard: Safeguard | None = None
    """None: cluster identities are not compared, and held actions cannot be confirmed."""
    applied: tuple[Object, ...] = ()
    """Services as they would be stored, which controller `service` plans in the places of those that are stored."""


@dataclass(frozen=True)
class Found:
    """A controller's plan. `in_order`: targets that are up to date; `wanted`: all that should have a load balancer
    (both for Services only).

    `busy`: what the cloud is still working on; a later plan may continue with it. `evidence`: whose the controller's
    cloud resources are. `load_balancers`: those that the plan is about, by ID.
    """

    plan: Plan
    in_order: tuple[str, ...] = ()
    wanted: frozenset[str] = frozenset()
    busy: tuple[str, ...] = ()
    evidence: Evidence | None = None
    load_balancers: Mapping[str, ObservedLoadBalancer] = field(default_factory=dict)


def without_healthy_backend(cloud: Cloud, found: Found) -> Plan:
    """The findings about Services all of whose checked backends are unhealthy: one call for each load balancer."""
    return Plan.of(
        finding
        for lb_id, health in healths(cloud, found).items()
        for finding in unhealthy(found.load_balancers[lb_id], health, cloud.cluster_id)
    )


def healths(cloud: Cloud, found: Found) -> dict[str, Health]:
    """The health of the members of each load balancer that serves, by its ID: one call for each."""
    load_balancers = cloud.load_balancers
    if load_balancers is None:
        return {}
    serving = [lb.id for lb in found.load_balancers.values() if lb.state is LoadBalancerState.READY]
    with ThreadPoolExecutor(_CONCURRENT) as pool:
        return dict(zip(serving, pool.map(load_balancers.health, serving), strict=True))


def unhealthy(lb: ObservedLoadBalancer, health: Health, cluster_id: str) -> Iterator[Action]:
    """The findings about the Services of this cluster that use this load balancer. Pure."""
    checked: dict[Owner, list[bool]] = {}
    for pool in lb.model.pools:
        owner = owner_of_part(pool.tags, lb)
        if owner is not None and owner.cluster_id == cluster_id and owner.name:
            known = (health.get((pool.name, *member.key)) for member in pool.members)
            checked.setdefault(owner, []).extend(each for each in known if each is not None)
    for owner, healthy in checked.items():
        if healthy and not any(healthy):
            target = service_plan.target_of(owner.namespace, owner.name)
            reason = f"none of the {len(healthy)} backends of load balancer {lb.id} passes its health check"
            finding = Attention.NO_HEALTHY_BACKEND
            yield Action(ActionKind.IGNORE, target, "no healthy backend", reason=reason, attention=finding)


def find(controller: str, kube: KubeApi, cloud: Cloud, machines: InstanceSnapshot, settings: PlanSettings) -> Found:
    """Observe and plan for this controller. Controllers share `machines`, so that each machine is described once.

    Raises the errors of `cloud` and `kube`.
    """
    found = _find(controller, kube, cloud, machines, settings)
    return replace(found, plan=settings.safeguard.released(found.plan)) if settings.safeguard else found


def _find(controller: str, kube: KubeApi, cloud: Cloud, machines: InstanceSnapshot, settings: PlanSettings) -> Found:
    binding = settings.safeguard.binding if settings.safeguard else UNBOUND
    match controller:
        case node.NAME:
            return Found(node.plan(node.observe(kube, machines)))
        case node_lifecycle.NAME:
            return Found(node_lifecycle.plan(node_lifecycle.observe(kube, machines), settings.lifecycle))
        case route.NAME:
            if settings.route is None:
                raise InvalidConfiguration("cluster-cidr", "missing; controller route requires it")
            table = route.observe(kube, cloud, machines)
            return Found(route.plan(table, settings.route), evidence=route.evidence(table, settings.route))
        case service.NAME:
            observation = service.observe(kube, cloud, settings.service, binding, settings.applied, machines)
            return _services(observation, settings.service)
        case volume.NAME:
            claims = volume.observe(kube, cloud, binding, machines)
            volumes = volume.plan(claims)
            waits = (action.target for action in volumes if isinstance(action.operation, volume_operations.Wait))
            return Found(volumes, busy=tuple(waits), evidence=volume.evidence(claims))
    raise ValueError(f"unknown controller {controller!r}")


def _services(observation: service.ServiceObservation, options: service.ServiceOptions) -> Found:
    plan = service.plan(observation, options)
    concerned = {object_of(action.target) for action in plan}
    rules = service.rules_of(observation, options)
    wants = service_rules.wants_load_balancer
    wanted = (each for each in observation.services if wants(each, rules, observation.builder))
    targets = {service_plan.target_of(each["metadata"]["namespace"], each["metadata"]["name"]) for each in wanted}
    return Found(
        plan,
        in_order=tuple(sorted(targets - concerned)),
        wanted=frozenset(targets),
        busy=tuple(sorted(f"load balancer {lb.id}" for lb in observation.load_balancers if not lb.settled)),
        evidence=service.evidence(observation),
        load_balancers={lb.id: lb for lb in observation.load_balancers},
    )
