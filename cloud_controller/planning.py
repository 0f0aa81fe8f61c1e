"""What each controller would do now: observed and planned at once, for those who have no loop.

That is the command line and the dry run; the daemon's loops observe from their caches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cloud_controller.cloud import Cloud, InvalidConfiguration
from cloud_controller.controllers import (
    node,
    node_lifecycle,
    route,
    service,
    service_plan,
    service_rules,
    volume,
    volume_operations,
)
from cloud_controller.instance_snapshot import InstanceSnapshot
from cloud_controller.kube import Kube
from cloud_controller.plan import Plan


@dataclass(frozen=True)
class PlanSettings:
    """The options on which plans depend; `route` is needed by controller `route` alone."""

    route: route.RouteOptions | None = None
    service: service.ServiceOptions = field(default_factory=service.ServiceOptions)
    lifecycle: node_lifecycle.NodeLifecycleOptions = field(default_factory=node_lifecycle.NodeLifecycleOptions)


@dataclass(frozen=True)
class Found:
    """A controller's plan. `in_order`: targets of what is as it should be (Services alone are told one by one).

    `busy`: the cloud is at work on something that a later plan may go on with.
    """

    plan: Plan
    in_order: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()


def find(controller: str, kube: Kube, cloud: Cloud, machines: InstanceSnapshot, settings: PlanSettings) -> Found:
    """Observe and plan for this controller. `machines` serves all controllers, so that each machine is asked for once.

    Raises the errors of `cloud` and `kube`.
    """
    match controller:
        case node.NAME:
            return Found(node.plan(node.observe(kube, machines)))
        case node_lifecycle.NAME:
            return Found(node_lifecycle.plan(node_lifecycle.observe(kube, machines), settings.lifecycle))
        case route.NAME:
            if settings.route is None:
                raise InvalidConfiguration("cluster-cidr", "missing; controller route needs it")
            return Found(route.plan(route.observe(kube, cloud, machines), settings.route))
        case service.NAME:
            return _services(service.observe(kube, cloud), settings.service)
        case volume.NAME:
            volumes = volume.plan(volume.observe(kube, cloud))
            waits = (action.target for action in volumes if isinstance(action.operation, volume_operations.Wait))
            return Found(volumes, busy=tuple(waits))
    raise ValueError(f"{controller!r} is no controller")


def _services(observation: service.ServiceObservation, options: service.ServiceOptions) -> Found:
    plan = service.plan(observation, options)
    concerned = {"/".join(action.target.split("/")[:3]) for action in plan}
    rules = service.rules_of(observation, options)
    wants = service_rules.wants_load_balancer
    wanted = (each for each in observation.services if wants(each, rules, observation.builder))
    targets = (service_plan.target_of(each["metadata"]["namespace"], each["metadata"]["name"]) for each in wanted)
    return Found(
        plan,
        in_order=tuple(sorted(target for target in targets if target not in concerned)),
        busy=tuple(sorted(f"load balancer {lb.id}" for lb in observation.load_balancers if not lb.settled)),
    )
