"""Which Services and nodes the service controller is concerned with, and what of them it looks at: pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.catalogue import Catalogue
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.load_balancer import LoadBalancerBuilder, Object
from cloud_controller.load_balancer_backends import NodeBackend
from cloud_controller.load_balancer_sharing import Sharing
from cloud_controller.nameable import Nameable

FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
"""Upstream's, so that a cluster may change its controller."""
FINALIZER_BESIDE_ANOTHER = "cloud-controller/load-balancer-cleanup"
"""Where upstream's controller runs beside ours (EKS): its own finalizer it takes off every Service that is deleted, of
whatever class, and the Service would be gone before its load balancer."""

EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
SERVICE_NAME_LABEL = "kubernetes.io/service-name"
"""On an EndpointSlice: the Service in whose namespace and for which it is."""

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
"""What decides neither listeners nor members (pods come by EndpointSlices)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan depends on besides the objects.

    `backend_nodes`: `eligible` as upstream has it (KEP-3458: neither readiness nor cordon nor role matter), or
    `ready-workers`: ready workers that are not cordoned. `without_class`: whether Services that name no class are ours;
    where the cloud's maker runs a controller that takes them (EKS), they are not. `binding`: which Kubernetes cluster
    this is. `sharing`: which load balancers annotations may name. `nameable`: which other resources that people keep.
    """

    cluster_id: str
    classes: frozenset[str] = frozenset()
    backend_nodes: Literal["eligible", "ready-workers"] = "eligible"
    without_class: bool = True
    binding: Binding = UNBOUND
    sharing: Sharing = Sharing.TAGGED
    nameable: Nameable = field(default_factory=Nameable)

    @property
    def finalizer(self) -> str:
        """The one that is put on Services."""
        return FINALIZER if self.without_class else FINALIZER_BESIDE_ANOTHER


# -------------------------------------------------------------------------------------------------------- Services


def wants_load_balancer(service: Object, rules: Rules, builder: LoadBalancerBuilder) -> bool:
    """Whether the Service shall have a load balancer from this cloud."""
    return (
        service["spec"].get("type") == "LoadBalancer"
        and not service["metadata"].get("deletionTimestamp")
        and is_of_our_class(service, rules)
        and builder.claims(service)
    )


def is_of_our_class(service: Object, rules: Rules) -> bool:
    """Whether the class that the Service names, or that it names none, makes it ours."""
    load_balancer_class = service["spec"].get("loadBalancerClass")
    return rules.without_class if load_balancer_class is None else load_balancer_class in rules.classes


def has_finalizer(service: Object) -> bool:
    """Whether a load balancer may have been made for the Service."""
    return bool(finalizers(service))


def finalizers(service: Object) -> list[str]:
    """Those of the Service that may be ours."""
    present = service["metadata"].get("finalizers") or []
    return [each for each in (FINALIZER, FINALIZER_BESIDE_ANOTHER) if each in present]


def service_traits(service: Object) -> tuple[Any, ...]:
    """All of a Service that a plan for it depends on (upstream: needsUpdate); what else changes brings no visit."""
    metadata, spec = service["metadata"], service["spec"]
    return (
        metadata["uid"],
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        tuple(finalizers(service)),
        {field: value for field, value in spec.items() if field not in _SPEC_WITHOUT_EFFECT},
        (service.get("status") or {}).get("loadBalancer"),
    )


def reused_id(service: Object, catalogue: Catalogue) -> str | None:
    """The load balancer that the Service names by annotation; None also for a wrong value, which `build` refuses."""
    try:
        found = catalogue.value(service["metadata"].get("annotations"), "id")
    except InvalidConfiguration:
        return None
    return None if found is None else str(found)


def preserves(service: Object, catalogue: Catalogue) -> bool:
    """Whether the Service's load balancer shall outlive it.

    Raises InvalidConfiguration for a wrong value: nothing is deleted as long as it is not clear.
    """
    return catalogue.value(service["metadata"].get("annotations"), "preserve_on_delete") is True


# ----------------------------------------------------------------------------------------------------------- nodes


def node_backend(node: Object, builder: LoadBalancerBuilder, rules: Rules) -> NodeBackend | None:
    """What the node is to load balancers; None where it may not, or cannot, be a member.

    A change of a node that changes nothing of this concerns no load balancer.
    """
    if not _is_stable(node) or (rules.backend_nodes == "ready-workers" and not _is_ready_worker(node)):
        return None
    return builder.backend(node)


def node_backends(nodes: Iterable[Object], builder: LoadBalancerBuilder, rules: Rules) -> tuple[NodeBackend, ...]:
    """The nodes that load balancers may send to, by name."""
    found = (node_backend(node, builder, rules) for node in nodes)
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.node))


def _is_stable(node: Object) -> bool:
    """Upstream's stableNodeSetPredicates."""
    metadata = node["metadata"]
    if metadata.get("deletionTimestamp"):
        return False
    excluded = (metadata.get("labels") or {}).get(EXCLUDE_LABEL)
    # As upstream parses it: anything but a clear "false", also an empty value, excludes.
    if excluded is not None and excluded not in _FALSE_WORDS:
        return False
    return not any(taint["key"] == _TO_BE_DELETED_TAINT for taint in node["spec"].get("taints") or [])


def _is_ready_worker(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    labels = node["metadata"].get("labels") or {}
    return ready and not node["spec"].get("unschedulable") and _CONTROL_PLANE_LABEL not in labels
