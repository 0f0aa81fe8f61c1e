"""The interface between the controllers and a cloud, in the terms of Kubernetes' cloudprovider.

Calls are synchronous and batched, and raise only the errors of `cloud_errors`. `docs/cloud-interface.md` maps each
method to its upstream name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from cloud_controller.cloud_errors import (
    AccessDenied,
    CloudError,
    Conflict,
    ForeignCluster,
    InvalidConfiguration,
    LeftOut,
    NotFound,
    Overtaken,
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
    "CcmPods",
    "Cloud",
    "CloudError",
    "Conflict",
    "DryRun",
    "DryRuns",
    "Fence",
    "ForeignCluster",
    "Instance",
    "InstanceRef",
    "InstanceState",
    "Instances",
    "InvalidConfiguration",
    "LeftOut",
    "NodeAddress",
    "NotFound",
    "Overtaken",
    "Postponed",
    "Quota",
    "QuotaExceeded",
    "Quotas",
    "Route",
    "RouteFailure",
    "Routes",
    "Selective",
    "TellsClusters",
    "TellsRights",
    "Throttled",
    "Unavailable",
    "Unlisting",
    "Untagged",
    "node_name",
]

# ------------------------------------------------------------------------------------------------------- instances


class InstanceState(StrEnum):
    """The state of a machine. Terminated machines appear only in lists; `describe` returns None for them."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """One entry of a node's `status.addresses`; types: InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS."""

    type: str
    address: str


def node_name(host_name: str) -> str:
    """The name that a kubelet gives the Node of a machine with this host name: without blanks around it, in lower case.

    Compare a Node's name with this only, never with what a cloud calls the machine.
    """
    return host_name.strip().lower()


@dataclass(frozen=True, slots=True)
class InstanceRef:
    """A node's machine: identified by provider ID if the node has one, else by the node's name."""

    node_name: str
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine of the cloud. `addresses`: in the order for the node's status.

    `name`: as the cloud spells it. `host_names`: what else its host may be called.
    `additional_annotations`: node annotations that only the cloud may set; None removes one that someone else has set.
    `created_at`: when it was created or last started; None if the cloud does not say.
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
    created_at: datetime | None = field(default=None, compare=False)
    host_names: tuple[str, ...] = ()

    @property
    def node_names(self) -> frozenset[str]:
        """The names that the machine's Node may have."""
        return frozenset(node_name(each) for each in (self.name, *self.host_names))


class Instances(Protocol):
    """Machines, in batches (upstream: InstancesV2)."""

    def list(self) -> Sequence[Instance]:
        """Every machine with this cluster's tag, including terminated ones while the cloud lists them.

        Lists may lag: only `describe` proves that a machine is gone.
        """
        ...

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        """Each machine, or None for one that the cloud reports as gone. Raises on any other response.

        A NODE IS DELETED BECAUSE OF THIS NONE: with a provider ID, the result must not come from a lagging list.
        Without one, a machine is the node's if `node_name` of what its host may be called is the node's name. Raises
        `Conflict` if two are (`clouds.common.node_names`).
        """
        ...


@runtime_checkable
class Selective(Protocol):
    """`Instances` of a cloud where some nodes are not the controllers' (optional)."""

    def leaves_alone(self, node: Mapping[str, Any]) -> bool:
        """Whether no controller may describe, change or delete this node, or route to it."""
        ...


@runtime_checkable
class Untagged(Protocol):
    """`Instances` of a cloud whose machines carry no cluster's tag (optional): `list` has all of the project.

    `created_at` of these is when they were created, not when they were last started.
    """

    @property
    def of_any_cluster(self) -> bool: ...


@runtime_checkable
class Unlisting(Protocol):
    """`Instances` of a cloud with machines that no list shows, such as Fargate's tasks (optional)."""

    def is_unlisted(self, node: Mapping[str, Any]) -> bool:
        """Whether the node's machine is one of them, by its provider ID: only `describe` shows it."""
        ...


# ---------------------------------------------------------------------------------------------------------- routes


@dataclass(frozen=True, slots=True)
class Route:
    """A pod route: packets for `destination_cidr` go to the machine `target_instance`.

    - `blackhole`: the machine is gone; `target_instance` is "" if the cloud no longer reports it.
    - `owned`: whether it has this cluster's tag; None if the cloud's routes have no tags. Then it is owned if it is
      inside a pod CIDR and its target is a machine of `Instances.list`, or unknown.
    - `partial`: one of several tables lacks it; `create` adds it there.
    """

    destination_cidr: str
    target_instance: str
    blackhole: bool = False
    owned: bool | None = True
    partial: bool = False


@dataclass(frozen=True, slots=True)
class RouteFailure:
    """A route that could not be created or deleted, and why."""

    route: Route
    error: CloudError


class Routes(Protocol):
    """The route table of the cluster's network (upstream: Routes), in batches."""

    def list(self) -> Sequence[Route]:
        """Every route of the table, including foreign ones."""
        ...

    def quota(self) -> int | None:
        """The route quota of the table; None if the cloud does not report it."""
        ...

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Create these routes, and let machines pass on what they bring; an identical existing one is a success."""
        ...

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Delete these routes; a missing route is a success."""
        ...


# ----------------------------------------------------------------------------------------------------------- cloud


CallObserver = Callable[[str, float, CloudError | None], None]
"""Called with the operation (`GET machines`; low cardinality, never an id), its duration in seconds and its error."""


class Cloud(Protocol):
    """One cloud account, as used by one cluster's controllers. A registered factory creates it from a cloud config."""

    @property
    def provider_name(self) -> str:
        """The scheme of provider IDs (upstream: ProviderName)."""
        ...

    @property
    def cluster_id(self) -> str:
        """The cluster id in this cluster's tags (upstream: HasClusterID). Required, unlike `--cluster-name`."""
        ...

    @property
    def load_balancer_classes(self) -> frozenset[str]:
        """The values of `spec.loadBalancerClass` that this cloud serves, besides an unset one."""
        ...

    @property
    def instances(self) -> Instances: ...

    @property
    def routes(self) -> Routes | None:
        """None if the cloud does not support routes."""
        ...

    @property
    def load_balancers(self) -> LoadBalancers | None:
        """None if the cloud does not support load balancers."""
        ...

    @property
    def volumes(self) -> Volumes | None:
        """None if another program provides volumes, such as the cloud's own CSI driver."""
        ...

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:
        """Raise unless the credentials have the permissions that these controllers need (`read_only`: for plans).

        `AccessDenied` names the missing permissions.
        """
        ...

    def observe_calls(self, observer: CallObserver) -> None:
        """From now on, call the observer after every attempt of an API call."""
        ...

    def fence_writes(self, fence: Fence) -> None:
        """From now on, call `fence` right before every attempt of a request that may change something.

        If it raises, the request is not sent and the exception is propagated. Reads are not fenced.
        """
        ...

    def cluster_access(self) -> str:
        """A short-lived kubeconfig as YAML. Raises `NotFound` if the cloud does not run the control plane."""
        ...


@runtime_checkable
class TellsClusters(Protocol):
    """A `Cloud` that tells which clusters it knows (optional), for `cleanup`. Others never prove that one is gone."""

    def has_cluster(self) -> bool | None:
        """Whether the cloud has the control plane of this cluster, in whatever state. None: it cannot tell.

        BECAUSE OF FALSE, `cleanup` DELETES EVERYTHING OF THE CLUSTER: return it only if nobody but the cloud can have
        run this control plane, and the cloud says that it does not exist. Raises on any other response.
        """
        ...

    def cluster_ids(self) -> Collection[str]:
        """The cluster ids in the tags of the account's machines, load balancers and volumes, whoever's they are."""
        ...


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of the account: how many `used` of at most `limit`. `of`: what it counts, such as `load balancers`.

    None: the cloud does not tell.
    """

    of: str
    used: int | None
    limit: int | None


@runtime_checkable
class Quotas(Protocol):
    """A `Cloud` that tells how much of its quotas is used, besides that of `Routes` (optional)."""

    def quotas(self, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
        """What reads the quotas of what these controllers create: each asks one API, so that none hides another's."""
        ...


@runtime_checkable
class TellsRights(Protocol):
    """A `Cloud` that tells which rights its credentials have (optional); others only verify the credentials."""

    def lacking_rights(self, controllers: Collection[str]) -> Sequence[str]:
        """The operations that these controllers need and the credentials do not allow."""
        ...


@dataclass(frozen=True, slots=True)
class CcmPods:
    """What shows which credentials the CCM's pods have.

    `environment`: the variables of its containers; the value None is in another object, such as a Secret.
    `machines`: the provider IDs of the nodes that the pods run on; "" for one without.
    """

    environment: Mapping[str, str | None]
    machines: Collection[str]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What dry runs of changes showed.

    `allowed`: operations. `lacking`: the cloud's refusals of operations, with their reasons. `unknown`: what dry runs
    could not show and why, as clauses.
    """

    allowed: Sequence[str] = ()
    lacking: Sequence[str] = ()
    unknown: Sequence[str] = ()


@runtime_checkable
class DryRuns(Protocol):
    """A `Cloud` where some changes can be tried without being made (optional); only the caller's rights are shown."""

    def dry_run(self, controllers: Collection[str], pods: CcmPods | None) -> DryRun:
        """Try a change of each kind that these controllers make, on the cluster's own objects, if the credentials are
        the CCM's. `pods` None: the CCM does not run in the cluster, or its pods do not show which credentials it has.
        """
        ...
