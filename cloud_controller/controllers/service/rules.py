"""Which Services and nodes the service controller handles, and which of their fields matter: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.cloud import InvalidConfiguration, NodeAddress
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.kube import name
from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.model import LoadBalancerBuilder, Object, ObservedLoadBalancer
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.load_balancers.pods import Address, PodNetwork, parsed_address
from cloud_controller.load_balancers.readiness_gates import ReadinessGates
from cloud_controller.load_balancers.refusals import MOST_PORTS
from cloud_controller.load_balancers.sharing import SHARE, Sharing

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
"""Upstream's finalizer, so that a cluster can switch controllers."""
FINALIZER_BESIDE_ANOTHER = "cloud-controller/load-balancer-cleanup"
"""Used when a managed control plane runs upstream's controller too: that removes its own finalizer from every deleted
Service of any class, so the Service would be gone before its load balancer."""

EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
"""Label of an EndpointSlice: the name of its Service, in the same namespace."""

_TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
_CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
_FALSE_WORDS = frozenset({"0", "f", "F", "false", "False", "FALSE"})

_SPEC_WITHOUT_EFFECT = frozenset(
    {
        "allocateLoadBalancerNodePorts",
        "clusterIP",
        "clusterIPs",
        "internalTrafficPolicy",
        "publishNotReadyAddresses",
        "selector",
        "trafficDistribution",
    }
)
"""Fields that affect neither listeners nor members (pods come from EndpointSlices)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan depends on besides the objects.

    - `backend_nodes`: `eligible`: as upstream (KEP-3458: readiness, cordon and role do not matter); `ready-workers`:
      ready workers that are not cordoned.
    - `without_class`: whether to serve Services without a class. False if a managed control plane does.
    - `binding`: the identity of this Kubernetes cluster.
    - `pod_ranges`: the cluster's pod CIDRs, if known.
    - `sharing`: which load balancers annotations may name; `share`: how many listeners a namespace may have on one that
      is shared with everybody.
    - `nameable`: which other existing resources annotations may name.
    - `gates`: the cloud's readiness gates of pods, if they are served.
    - `address_changes`: whether a change of a Service's address needs an acknowledgement.
    """

    cluster_id: str
    classes: frozenset[str] = frozenset()
    backend_nodes: Literal["eligible", "ready-workers"] = "eligible"
    without_class: bool = True
    binding: Binding = UNBOUND
    pod_ranges: tuple[str, ...] = ()
    sharing: Sharing = Sharing.TAGGED
    share: int = SHARE
    nameable: Nameable = field(default_factory=Nameable)
    gates: ReadinessGates | None = None
    address_changes: AddressChanges = AddressChanges.ALLOW

    @property
    def finalizer(self) -> str:
        """The finalizer to add to Services."""
        return FINALIZER if self.without_class else FINALIZER_BESIDE_ANOTHER


# -------------------------------------------------------------------------------------------------------- Services


def wants_load_balancer(service: Object, rules: Rules, builder: LoadBalancerBuilder) -> bool:
    """Whether the Service should have a load balancer of this cloud."""
    return (
        service["spec"].get("type") == "LoadBalancer"
        and not service["metadata"].get("deletionTimestamp")
        and is_of_our_class(service, rules)
        and builder.claims(service)
    )


def lacks_controller(service: Object, rules: Rules, builder: LoadBalancerBuilder) -> bool:
    """Whether the Service is left to another controller, and none has given it an address yet."""
    if service["spec"].get("type") != "LoadBalancer" or service["metadata"].get("deletionTimestamp"):
        return False
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress")
    return not ingress and not wants_load_balancer(service, rules, builder)


def lacks_endpoints(
    service: Object, slices: Iterable[Mapping[str, Any]], rules: Rules, builder: LoadBalancerBuilder
) -> bool:
    """Whether the Service should have a load balancer, and none of its endpoints is ready."""
    return wants_load_balancer(service, rules, builder) and not ready_nodes(slices)


def ready_nodes(slices: Iterable[Mapping[str, Any]]) -> list[str | None]:
    """The node of each ready endpoint, whatever its port; None for one that is not on a node."""
    endpoints = (endpoint for each in slices for endpoint in each.get("endpoints") or ())
    # By the API's definition, an unset condition means ready.
    return [each.get("nodeName") for each in endpoints if (each.get("conditions") or {}).get("ready") is not False]


def may_keep(service: Object, rules: Rules) -> bool:
    """Whether the Service may keep a load balancer until its author acknowledges that another controller serves it."""
    if rules.address_changes is AddressChanges.ALLOW or service["metadata"].get("deletionTimestamp"):
        return False
    return service["spec"].get("type") == "LoadBalancer" and has_finalizer(service)


def is_of_our_class(service: Object, rules: Rules) -> bool:
    """Whether the Service's class, or its absence, makes this controller responsible."""
    load_balancer_class = service["spec"].get("loadBalancerClass")
    return rules.without_class if load_balancer_class is None else load_balancer_class in rules.classes


def says_it_has_one(service: Object, rules: Rules, builder: LoadBalancerBuilder, identified: bool) -> bool:
    """Whether the Service says that this controller has given it a load balancer: by its status or, once it wants none,
    by its finalizer.

    `identified`: whether Nodes tell which machines the cluster has. Otherwise a finalizer says too little: it is set
    before there is a load balancer, and a cluster without machines could not get rid of a Service that never had one.
    """
    balanced = service["spec"].get("type") == "LoadBalancer"
    if balanced and not (is_of_our_class(service, rules) and builder.claims(service)):
        return False
    ended = not balanced or bool(service["metadata"].get("deletionTimestamp"))
    if ended and not has_finalizer(service):
        return False
    return bool(((service.get("status") or {}).get("loadBalancer") or {}).get("ingress")) or (ended and identified)


def has_finalizer(service: Object) -> bool:
    """Whether a load balancer may have been created for the Service."""
    return bool(finalizers(service))


def finalizers(service: Object) -> list[str]:
    """The Service's finalizers that this controller may have added."""
    present = service["metadata"].get("finalizers") or []
    return [each for each in (FINALIZER, FINALIZER_BESIDE_ANOTHER) if each in present]


def asked_traits(service: Object) -> tuple[Any, ...]:
    """The user-controlled fields of a Service that its plan depends on."""
    metadata, spec = service["metadata"], service["spec"]
    return (
        metadata["uid"],
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        {field: value for field, value in spec.items() if field not in _SPEC_WITHOUT_EFFECT},
    )


def service_traits(service: Object) -> tuple[Any, ...]:
    """All fields of a Service that its plan depends on (upstream: needsUpdate); other changes are ignored.

    Besides `asked_traits`, these are the fields that the controller itself writes.
    """
    return (
        *asked_traits(service),
        tuple(finalizers(service)),
        (service.get("status") or {}).get("loadBalancer"),
    )


def catalogue_of(service: Object, catalogue: Catalogue) -> Catalogue:
    """The annotations of the kind of load balancer that the Service's class selects."""
    return catalogue.of_class(service["spec"].get("loadBalancerClass"))


def reused_id(service: Object, catalogue: Catalogue) -> str | None:
    """The load balancer that the Service names in an annotation; None for an invalid value, which `build` rejects."""
    try:
        found = catalogue_of(service, catalogue).value(service["metadata"].get("annotations"), "id")
    except InvalidConfiguration:
        return None
    return None if found is None else str(found)


def preserves(service: Object, catalogue: Catalogue) -> bool:
    """Whether the load balancer is kept when the Service is deleted.

    Raises InvalidConfiguration for an invalid value: NOTHING MAY BE DELETED until it is corrected.
    """
    return catalogue_of(service, catalogue).value(service["metadata"].get("annotations"), "preserve_on_delete") is True


# ----------------------------------------------------------------------------------------------------------- nodes


class NodeTraits(NamedTuple):
    """All fields of a node that load balancers depend on; other changes are ignored.

    `backend` is None if the node may not, or cannot, be a member; `excluded` is what it would be without its label.
    """

    backend: NodeBackend | None
    addresses: tuple[NodeAddress, ...]
    pod_cidrs: tuple[str, ...]
    excluded: NodeBackend | None


def node_traits(node: Object, builder: LoadBalancerBuilder, rules: Rules) -> NodeTraits:
    """The node's fields that load balancers depend on."""
    backend, excluded = _backend(node, builder) if _may_serve(node, rules) else None, None
    if is_excluded(node):
        backend, excluded = None, backend
    return NodeTraits(backend, view.addresses(node), view.pod_cidrs(node), excluded)


def backends_of(nodes: Iterable[Object], builder: LoadBalancerBuilder, rules: Rules) -> Backends:
    """The nodes that load balancers may send traffic to, and the pod network."""
    nodes = sorted(nodes, key=view.age)
    found: dict[str, NodeBackend] = {}
    excluded: dict[str, NodeBackend] = {}
    claimed: set[str] = set()
    own: dict[Address, str] = {}
    for node in nodes:
        backend = _backend(node, builder)
        # If two nodes claim one machine, it belongs to the older one.
        if backend is not None and backend.instance_id not in claimed:
            claimed.add(backend.instance_id)
            if _may_serve(node, rules):
                (excluded if is_excluded(node) else found)[backend.node] = backend
        if backend is None or not backend.is_pod:
            parsed = (parsed_address(each.address) for each in view.addresses(node))
            own |= {address: name(node) for address in parsed if address is not None}
    pods = PodNetwork(rules.pod_ranges, {name(node): view.pod_cidrs(node) for node in nodes}, own)
    eligible, left_out = (tuple(each[name] for name in sorted(each)) for each in (found, excluded))
    return Backends(eligible, pods=pods, excluded=left_out)


def members_of(
    service: Object, backends: Backends, builder: LoadBalancerBuilder, observed: Sequence[ObservedLoadBalancer]
) -> Mapping[tuple[str, int], tuple[Member, ...]]:
    """The members of the Service's listeners, even if other settings are invalid. Raises InvalidConfiguration.

    If it has more ports than any cloud serves, only of the ports that have a listener.
    """
    spec = service["spec"]
    if len(spec.get("ports") or ()) > MOST_PORTS:
        numbers = {listener.port for lb in observed for listener in lb.model.listeners}
        served = [port for port in spec["ports"] if port["port"] in numbers]
        service = {**service, "spec": {**spec, "ports": served}}
    return builder.members(service, backends)


def _backend(node: Object, builder: LoadBalancerBuilder) -> NodeBackend | None:
    found = builder.backend(node)
    return replace(found, leaving=True) if found and view.has_taint(node, _TO_BE_DELETED_TAINT) else found


def _may_serve(node: Object, rules: Rules) -> bool:
    """Upstream's stableNodeSetPredicates except for taint and label, and the rule of `backend_nodes`."""
    if rules.backend_nodes == "ready-workers" and not _is_ready_worker(node):
        return False
    return not node["metadata"].get("deletionTimestamp")


def is_excluded(node: Object) -> bool:
    """Whether a label excludes the node from load balancers."""
    excluded = (node["metadata"].get("labels") or {}).get(EXCLUDE_LABEL)
    # As upstream parses it: any value except a clear "false" excludes the node, even an empty one.
    return excluded is not None and excluded not in _FALSE_WORDS


def _is_ready_worker(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    labels = node["metadata"].get("labels") or {}
    return ready and not node["spec"].get("unschedulable") and _CONTROL_PLANE_LABEL not in labels
