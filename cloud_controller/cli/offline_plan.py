"""Plans what changes between two sets of manifests, without a cluster and without a cloud. Pure.

The controller's own plan for each Service, from the load balancer that the earlier manifest asks for to the one that
the later asks for. What only the API server or the cloud knows is ASSUMED: node ports, addresses, members, subnets;
what they alone would refuse is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from cloud_controller.binding import UNBOUND
from cloud_controller.cli.node_ports import collisions
from cloud_controller.cli.planned_service import PlannedService, Refusal, ServicesPlan, annotations_by_field, planned
from cloud_controller.cli.service_defaults import with_defaults
from cloud_controller.cli.service_files import GivenService, Manifests
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds import CloudDescriptor
from cloud_controller.clouds.descriptor import Assumed
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.controllers.service.plan import plan_service
from cloud_controller.controllers.service.rules import Rules, reused_id, wants_load_balancer
from cloud_controller.kube import Object
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.model import (
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
)
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.load_balancers.operations import CreateLoadBalancer, Operation
from cloud_controller.load_balancers.sharing import Sharing
from cloud_controller.plan import Action

NOTE = (
    "node ports, addresses, members and what else only the API server or the cloud knows are assumed; what only they "
    "refuse is not found"
)
_CLUSTER_ID = "assumed"
_PRESENT = "(present)"
"""The ID of the load balancer that a Service has by the earlier manifests."""
_ADDRESS = Ingress(hostname="assumed")
_NO_MEMBERS = ("; 0 backends", " with no members")
"""In summaries: nodes, and so members, are not known."""


def compare(before: Manifests, after: Manifests, cloud: CloudDescriptor, options: ServiceOptions) -> ServicesPlan:
    """The plans from the Services of `before` to those of `after`, by namespace and name.

    Raises InvalidConfiguration if the cloud does not support plans without the cloud.
    """
    if cloud.assumed is None:
        raise InvalidConfiguration("against", f"cloud {cloud.name} does not support plans without the cloud")
    # Which load balancers are shared, and what may be named, depends on tags, which only the cloud knows.
    # What acknowledges the change of an address names the load balancer that only the cloud knows.
    allowed = AddressChanges.ALLOW
    options = replace(options, sharing=Sharing.ANY, share=0, nameable=Nameable(), address_changes=allowed)
    classes = cloud.load_balancer_classes | cloud.default_classes
    rules = options.rules(_CLUSTER_ID, classes, UNBOUND)
    present = _Present(cloud.assumed, rules)
    for given in before.services:
        present.add(given)
    later = {given.key: given for given in after.services}
    # What is removed frees ports of shared load balancers for the others.
    gone = [present.without(given) for given in before.services if given.key not in later]
    refused = collisions(after.services)
    made = [
        planned(given.key, given.source, (), wanted=False, refusal=refused[given.key])
        if given.key in refused
        else present.planned(given)
        for given in after.services
    ]
    return ServicesPlan(tuple(sorted((*gone, *made), key=lambda each: each.key)), after.ignored, (NOTE,))


@dataclass
class _Present:
    """What the earlier manifests come to. Each plan changes what the next one finds of shared load balancers."""

    assume: Callable[[str, Object], Assumed]
    rules: Rules
    stored: dict[str, Object] = field(default_factory=dict)
    """The Services that the API server would accept."""
    services: dict[str, Object] = field(default_factory=dict)
    """Those that have a load balancer."""
    own: dict[str, ObservedLoadBalancer] = field(default_factory=dict)
    """By Service."""
    shared: dict[str, ObservedLoadBalancer] = field(default_factory=dict)
    """By ID: those that annotations name."""

    def add(self, given: GivenService) -> None:
        """The load balancer of this Service. A Service that the controller refuses has none."""
        try:
            service = self.stored[given.key] = with_defaults(given.object)
            builder, facts = self.assume(_CLUSTER_ID, service)
            if not wants_load_balancer(service, self.rules, builder):
                return
            built = builder.build(service, Backends(), facts)
        except InvalidConfiguration:
            return
        if built.reuse is None:
            ready = LoadBalancerState.READY
            self.own[given.key] = ObservedLoadBalancer(_PRESENT, ready, built.model, (_ADDRESS,))
        else:
            lb, parts = self._shared(built.reuse.id), built.model
            model = replace(
                lb.model,
                listeners=(*lb.model.listeners, *parts.listeners),
                pools=(*lb.model.pools, *parts.pools),
            )
            self.shared[lb.id] = replace(lb, model=model)
        addresses = [each.to_json() for each in built.published or (_ADDRESS,)]
        self.services[given.key] = {**service, "status": {"loadBalancer": {"ingress": addresses}}}

    def without(self, given: GivenService) -> PlannedService:
        """The plan for a Service that only the earlier manifests have."""
        service = self.services.get(given.key)
        if service is None:
            return replace(planned(given.key, given.source, (), wanted=False), earlier=True)
        metadata = {**service["metadata"], "deletionTimestamp": service["metadata"]["creationTimestamp"]}
        return replace(self._plan(given, {**service, "metadata": metadata}), earlier=True)

    def planned(self, given: GivenService) -> PlannedService:
        """The plan for a Service of the later manifests."""
        before = self.stored.get(given.key)
        try:
            service = with_defaults(given.object)
            if before is not None:
                _require_same_class(before["spec"], service["spec"])
                service["status"] = self.services.get(given.key, before)["status"]
        except InvalidConfiguration as fault:
            return planned(given.key, given.source, (), wanted=False, refusal=Refusal.of(fault))
        return self._plan(given, service)

    def _plan(self, given: GivenService, service: Object) -> PlannedService:
        if given.key in self.services:
            metadata = service["metadata"]
            metadata["finalizers"] = [*(metadata.get("finalizers") or ()), self.rules.finalizer]
        builder, facts = self.assume(_CLUSTER_ID, service)
        wanted = wants_load_balancer(service, self.rules, builder)
        named = reused_id(service, builder.catalogue) if wanted else None
        if named is not None:
            self.shared[named] = self._shared(named)
        present = [*self.shared.values()]
        if given.key in self.own:
            present.append(self.own[given.key])
        found = plan_service(service, present, Backends(), builder, facts, self.rules)
        self._carry_out(action.operation for action in found.plan.changes)
        return planned(
            given.key,
            given.source,
            map(_assumed, found.plan),
            wanted=wanted,
            refusal=Refusal.of(found.fault) if found.fault else None,
            annotations=annotations_by_field(service, builder.catalogue),
        )

    def _carry_out(self, operations: Iterable[object]) -> None:
        for operation in operations:
            if isinstance(operation, Operation) and not isinstance(operation, CreateLoadBalancer):
                lb = self.shared.get(operation.id)
                self.shared |= {} if lb is None else {lb.id: apply_operation(lb, operation)}

    def _shared(self, id: str) -> ObservedLoadBalancer:
        new = ObservedLoadBalancer(id, LoadBalancerState.READY, LoadBalancerModel(id), (_ADDRESS,))
        return self.shared.get(id, new)


def _require_same_class(before: Object, after: Object) -> None:
    """The API server refuses another class, or one for a Service that had none."""
    was, is_now = before.get("loadBalancerClass"), after.get("loadBalancerClass")
    if before["type"] == after["type"] == "LoadBalancer" and was != is_now:
        allowed = "none" if was is None else str(was)
        raise InvalidConfiguration("spec.loadBalancerClass", "cannot be changed", f"{allowed}; or a new Service")


def _assumed(action: Action) -> Action:
    summary = action.summary
    for words in _NO_MEMBERS:
        summary = summary.replace(words, "")
    return replace(action, summary=summary, assumed=True)
