"""Observes and plans once for one controller: for the command line and the dry run.

The daemon's loops observe through their caches instead.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.plan import Plan, object_of
from cloud_controller.safeguard import Safeguard


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
            observation = service.observe(kube, cloud, settings.service, binding, settings.applied)
            return _services(observation, settings.service)
        case volume.NAME:
            claims = volume.observe(kube, cloud, binding)
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
