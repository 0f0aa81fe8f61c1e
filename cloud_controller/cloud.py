"""What a cloud must offer: the interface between the controllers and any cloud, in Kubernetes' cloudprovider terms.

Every call is synchronous, takes as many objects as it can (a page of the cloud's API covers as many nodes as it holds)
and raises only the errors of `cloud_errors`. `docs/cloud-interface.md` maps each method to its upstream name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.load_balancer_operations import LoadBalancers

__all__ = [
    "AccessDenied",
    "CallObserver",
    "Cloud",
    "CloudError",
    "Conflict",
    "Instance",
    "InstanceRef",
    "InstanceState",
    "Instances",
    "InvalidConfiguration",
    "NodeAddress",
    "NotFound",
    "QuotaExceeded",
    "Route",
    "RouteFailure",
    "Routes",
    "Throttled",
    "Unavailable",
]

# ------------------------------------------------------------------------------------------------------- instances


class InstanceState(StrEnum):
    """The life of a machine as controllers see it; a terminated one is reported as absent."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """One entry of a node's `status.addresses`; types: InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS."""

    type: str
    address: str


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """How Kubernetes knows a machine: by provider ID where the node has one, else by the node's name."""

    node_name: str
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine of the cloud. `addresses` is in the order in which the node shall carry them."""

    id: str
    provider_id: str
    name: str
    type: str
    zone: str
    region: str
    state: InstanceState
    addresses: tuple[NodeAddress, ...]
    additional_labels: Mapping[str, str] = field(default_factory=dict)
    additional_annotations: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


class Instances(Protocol):
    """Machines, in batches (upstream: InstancesV2)."""

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each machine, or None for one that the cloud says is gone. Raises rather than guess on any other answer."""
        ...


# ---------------------------------------------------------------------------------------------------------- routes


@dataclass(frozen=True, slots=True)
class Route:
    """A pod route: packets for `destination_cidr` go to the machine `target_instance`.

    `owned`: it leads to a machine that carries, or carried, this cluster's tag. `blackhole`: its machine is gone.
    """

    destination_cidr: str
    target_instance: str
    blackhole: bool = False
    owned: bool = True


@dataclass(frozen=True, slots=True)
class RouteFailure:
    """A route of a batch that could not be written or removed, and why."""

    route: Route
    error: CloudError


class Routes(Protocol):
    """The route table of the cluster's network (upstream: Routes), in batches."""

    def list(self) -> Sequence[Route]:
        """Every route of the table, foreign ones too (`owned=False`)."""
        ...

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Write them; one that is already there as wanted is a success."""
        ...

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Remove them; one that is already gone is a success."""
        ...


# ----------------------------------------------------------------------------------------------------------- cloud


CallObserver = Callable[[str, float, CloudError | None], None]
"""Is told of one call: the operation (`GET machines`; few distinct ones, never an id), its seconds, its error."""


class Cloud(Protocol):
    """One cloud account as one cluster's controllers use it. Made by a registered factory from a cloud config."""

    @property
    def provider_name(self) -> str:
        """The scheme of provider IDs (upstream: ProviderName)."""
        ...

    @property
    def cluster_id(self) -> str:
        """What every tag of this cluster carries (upstream: HasClusterID); required, unlike `--cluster-name`."""
        ...

    @property
    def load_balancer_classes(self) -> frozenset[str]:
        """The `spec.loadBalancerClass` values that this cloud claims, besides none set."""
        ...

    @property
    def instances(self) -> Instances: ...

    @property
    def routes(self) -> Routes | None:
        """None where the cloud has no route tables."""
        ...

    @property
    def load_balancers(self) -> LoadBalancers | None:
        """None where the cloud has no load balancers."""
        ...

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        """Raise unless the credentials work and have the rights that these controllers need (`read_only`: to plan).

        `AccessDenied` names the missing rights; `Unavailable`, `InvalidConfiguration` as everywhere.
        """
        ...

    def observe_calls(self, observer: CallObserver) -> None:
        """From now on tell the observer of every call to the cloud's API, each attempt for itself."""
        ...

    def cluster_access(self) -> str:
        """A short-lived kubeconfig, as YAML, where the cloud runs the control plane; else raises `NotFound`."""
        ...
