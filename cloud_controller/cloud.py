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
    Postponed,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.fence import Fence
from cloud_controller.load_balancers.operations import LoadBalancers
from cloud_controller.volumes import Volumes

__all__ = [
    "AccessDenied",
    "CallObserver",
    "Cloud",
    "CloudError",
    "Conflict",
    "Fence",
    "Instance",
    "InstanceRef",
    "InstanceState",
    "Instances",
    "InvalidConfiguration",
    "NodeAddress",
    "NotFound",
    "Postponed",
    "QuotaExceeded",
    "Route",
    "RouteFailure",
    "Routes",
    "Throttled",
    "Unavailable",
]

# ------------------------------------------------------------------------------------------------------- instances


class InstanceState(StrEnum):
    """The life of a machine as controllers see it. A terminated one is only listed; described, it is absent."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATED = "terminated"


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
    """A machine of the cloud. `addresses` is in the order in which the node shall carry them.

    `additional_annotations`: those of the node that the cloud alone decides; None takes one off that somebody else set.
    """

    id: str
    provider_id: str
    name: str
    type: str
    zone: str
    region: str
    state: InstanceState
    addresses: tuple[NodeAddress, ...]
    additional_labels: Mapping[str, str] = field(default_factory=dict)
    additional_annotations: Mapping[str, str | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


class Instances(Protocol):
    """Machines, in batches (upstream: InstancesV2)."""

    def list(self) -> Sequence[Instance]:
        """Every machine with this cluster's tag, terminated ones too as long as the cloud lists them.

        A cloud's lists may lag behind: only `describe` says that a machine is gone.
        """
        ...

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each machine, or None for one that the cloud says is gone. Raises rather than guess on any other answer.

        With a provider ID its answer must not lag: a node is deleted because of that None.
        """
        ...


# ---------------------------------------------------------------------------------------------------------- routes


@dataclass(frozen=True, slots=True)
class Route:
    """A pod route: packets for `destination_cidr` go to the machine `target_instance`.

    `blackhole`: its machine is gone; `target_instance` is "" where the cloud does not tell any more which one it was.
    `owned`: whether it carries this cluster's mark; None where the cloud's routes carry none. Then it is owned if it
    lies inside the cluster's pod range and leads to a machine of `Instances.list`, or to one that is not told.
    """

    destination_cidr: str
    target_instance: str
    blackhole: bool = False
    owned: bool | None = True


@dataclass(frozen=True, slots=True)
class RouteFailure:
    """A route of a batch that could not be written or removed, and why."""

    route: Route
    error: CloudError


class Routes(Protocol):
    """The route table of the cluster's network (upstream: Routes), in batches."""

    def list(self) -> Sequence[Route]:
        """Every route of the table, foreign ones too."""
        ...

    def quota(self) -> int | None:
        """How many routes the table may hold; None where the cloud does not tell."""
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

    @property
    def volumes(self) -> Volumes | None:
        """None where volumes are another program's, as a storage driver of the cloud's maker."""
        ...

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        """Raise unless the credentials work and have the rights that these controllers need (`read_only`: to plan).

        `AccessDenied` names the missing rights; `Unavailable`, `InvalidConfiguration` as everywhere.
        """
        ...

    def observe_calls(self, observer: CallObserver) -> None:
        """From now on tell the observer of every call to the cloud's API, each attempt for itself."""
        ...

    def fence_writes(self, fence: Fence) -> None:
        """From now on call `fence` right before each request that may change something, each attempt for itself.

        What it raises goes up to the caller as it is, and the request is not sent. Reads are not fenced.
        """
        ...

    def cluster_access(self) -> str:
        """A short-lived kubeconfig, as YAML, where the cloud runs the control plane; else raises `NotFound`."""
        ...
