"""A load balancer as a model: what should be, what is, and who owns it.

A cloud's `build` makes the model that a Service asks for (pure), its `read` the models that exist; the generic `diff`
of `load_balancer_diff` leads from one to the other by `load_balancer_operations`, one small method of the cloud each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue, Value
from cloud_controller.load_balancers.nameable import Named

Object = dict[str, Any]
"""A Kubernetes object as plain JSON."""

CLUSTER_TAG = "kubernetes.io/cluster"
SERVICE_UID_TAG = "kubernetes.io/service-uid"
SERVICE_TAG = "kubernetes.io/service"
CLUSTER_UID_TAG = "cloud-controller/cluster-uid"
"""The UID of namespace `kube-system` of the Kubernetes cluster for which something was made (`binding`)."""
PRESERVED_TAG = "cloud-controller/preserved-from"
"""On what a deleted Service left behind on purpose: CLUSTER/NAMESPACE/NAME. Nobody owns it any more."""

# ------------------------------------------------------------------------------------------------------- ownership


@dataclass(frozen=True, slots=True)
class Owner:
    """The Service that a load balancer belongs to. Identity is cluster and UID; the name is for people.

    `namespace` and `name` are empty where somebody took away the tag that holds them.
    """

    cluster_id: str
    uid: str
    namespace: str
    name: str

    @property
    def load_balancer_name(self) -> str:
        """What people see; two Services may have the same (`a-b` in `c`, `b` in `c-a`)."""
        return f"{self.cluster_id}-{self.namespace}-{self.name}"

    @property
    def client_token(self) -> str:
        """The idempotency token of the first load balancer of the Service."""
        return f"{self.cluster_id}-{self.uid}"

    @property
    def tags(self) -> dict[str, str]:
        """What everything that is made for the Service carries, from the create call on."""
        return {
            CLUSTER_TAG: self.cluster_id,
            SERVICE_UID_TAG: self.uid,
            SERVICE_TAG: f"{self.namespace}/{self.name}",
        }

    def released(self, tags: Mapping[str, str]) -> dict[str, str]:
        """These tags for something that stays when its Service goes: without an owner, saying whose it was."""
        rest = {key: value for key, value in tags.items() if key not in {*self.tags, CLUSTER_UID_TAG}}
        return rest | {PRESERVED_TAG: f"{self.cluster_id}/{self.namespace}/{self.name}"}

    def owns(self, tags: Mapping[str, str]) -> bool:
        """Whether these are the tags of something of this Service: cluster and UID decide."""
        return tags.get(CLUSTER_TAG) == self.cluster_id and tags.get(SERVICE_UID_TAG) == self.uid

    def __str__(self) -> str:
        service = f"Service {self.namespace}/{self.name}" if self.name else f"the Service of UID {self.uid}"
        return f"{service} of cluster {self.cluster_id}"

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> Owner | None:
        """The owner that the tags name, or None where cluster or UID is missing."""
        cluster_id, uid = tags.get(CLUSTER_TAG), tags.get(SERVICE_UID_TAG)
        if not cluster_id or not uid:
            return None
        namespace, _, name = tags.get(SERVICE_TAG, "").partition("/")
        return cls(cluster_id, uid, namespace, name) if namespace and name else cls(cluster_id, uid, "", "")


# ----------------------------------------------------------------------------------------------------------- model


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How a member is found fit for traffic. Protocol `NONE`: it always is. `port` None: the member's own.

    `success_codes`: the codes of HTTP that pass; None where the cloud has no such thing, or the protocol.
    """

    protocol: str
    port: int | None = None
    path: str | None = None
    interval_seconds: int = 2
    timeout_seconds: int = 1
    healthy_threshold: int = 2
    unhealthy_threshold: int = 2
    success_codes: str | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Members that serve the same port (a cloud may say backend set, target group, server group).

    `tags` say whose it is where its load balancer is shared.
    """

    name: str
    health_check: HealthCheck
    members: tuple[Member, ...] = ()
    attributes: Mapping[str, Value | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listener:
    """A port on which the load balancer takes traffic, and the pool that gets it. `tags` as of a pool."""

    protocol: str
    port: int
    pool: str
    attributes: Mapping[str, Value | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from the other listeners of its load balancer."""
        return (self.protocol, self.port)

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class LoadBalancerModel:
    """A whole load balancer. `attributes` hold only what the cloud's `build` decides: nothing else is compared."""

    name: str
    attributes: Mapping[str, Value | None] = field(default_factory=dict)
    listeners: tuple[Listener, ...] = ()
    pools: tuple[Pool, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def part_tags(self) -> tuple[Mapping[str, str], ...]:
        """The tags of each listener and pool."""
        return (*(each.tags for each in self.listeners), *(each.tags for each in self.pools))


class LoadBalancerState(StrEnum):
    """The life of a load balancer in its cloud, as far as a controller must know it.

    `PARTIAL`: parts of it without itself, in a cloud where it takes several calls: a creation broke off before it, or
    a deletion is not through. They serve nobody; a creation with the same token takes them over.
    """

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class Ingress:
    """Where clients reach a load balancer: an IP or a hostname. `ip_mode` as in a Service's status."""

    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None

    def to_json(self) -> dict[str, str]:
        """The entry of `status.loadBalancer.ingress`."""
        parts = {"ip": self.ip, "hostname": self.hostname, "ipMode": self.ip_mode}
        return {key: value for key, value in parts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Adoptable:
    """Says that another controller made a load balancer for a Service, which may take it over (`AdoptLoadBalancer`).

    `maker`: that controller. `name`: what it calls the load balancer of the Service (`LoadBalancerBuilder.foreign_name`
    says whose that is). `service`: NAMESPACE/NAME as its tags have it, for people. `refusal`: why it can't be adopted.
    """

    maker: str
    name: str
    service: str = ""
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedLoadBalancer:
    """A load balancer that exists. `created_at` only orders those of one Service.

    `settled`: the cloud is not at work on it, so that another look would tell nothing new. `network`: where its members
    must be, in a cloud whose load balancers can be reused. With `adoptable` it carries no owner's tags yet.
    """

    id: str
    state: LoadBalancerState
    model: LoadBalancerModel
    ingress: tuple[Ingress, ...] = ()
    state_reason: str | None = None
    created_at: str = ""
    settled: bool = True
    network: str | None = None
    adoptable: Adoptable | None = None

    @property
    def owner(self) -> Owner | None:
        """The Service that its tags name: the whole of it is that Service's."""
        return Owner.of_tags(self.model.tags)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Every Service that it, or a part of it, belongs to."""
        found = (Owner.of_tags(tags) for tags in (self.model.tags, *self.model.part_tags))
        return tuple(dict.fromkeys(owner for owner in found if owner is not None))


# --------------------------------------------------------------------------------------------- what a Service comes to


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that a Service asks for and the cloud does not do."""

    field: str
    value: Value
    reason: str


@dataclass(frozen=True, slots=True)
class Reuse:
    """A load balancer that exists, and on which a Service wants its listeners.

    `force`: listeners there that belong to nobody may be taken over. `network`: where the Service's members are.
    """

    id: str
    force: bool = False
    network: str | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """What a Service comes to on a cloud. `warnings` are for the Service's owner: the event's reason and its message.

    With `reuse`, the model's listeners and pools, tagged with their owner, belong on that load balancer; its name,
    attributes and tags mean nothing. `named`: the resources of other people that its annotations name.
    """

    model: LoadBalancerModel
    ignored: tuple[Ignored, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    reuse: Reuse | None = None
    named: tuple[Named, ...] = ()


class LoadBalancerBuilder(Protocol):
    """The pure half of a cloud's load balancers."""

    @property
    def catalogue(self) -> Catalogue:
        """What annotations say, and what changing them does."""
        ...

    def claims(self, service: Object) -> bool:
        """Whether a Service of type LoadBalancer, and of no class or one of ours, is ours to serve.

        Not so where an annotation leaves it to another controller: nothing is made for it, and nothing said.
        """
        ...

    def follows_endpoints(self, service: Object) -> bool:
        """Whether the Service's members depend on where its pods are."""
        ...

    def drains(self, service: Object) -> bool:
        """Whether a member of the Service's load balancer that is removed keeps the connections that it has."""
        ...

    def pod_ranges(self, service: Object) -> tuple[str, ...] | None:
        """Where the Service's members are pods: the ranges of the cloud's own network in which pods may have addresses.

        None where its members are node ports. Raises InvalidConfiguration where that is not clear.
        """
        ...

    def backend(self, node: Object) -> NodeBackend | None:
        """All that load balancers take of a node; None for one that can't be a member (yet)."""
        ...

    def foreign_name(self, owner: Owner) -> str | None:
        """What other controllers of this cloud call the load balancer of this Service; None: none is ever adopted."""
        ...

    def build(self, service: Object, backends: Backends) -> Built:
        """The load balancer that the Service shall have with these backends.

        Raises InvalidConfiguration, naming the Service's field or annotation.
        """
        ...

    def members(self, service: Object, backends: Backends) -> Mapping[tuple[str, int], tuple[Member, ...]]:
        """The members behind each listener (protocol and port), whatever else is wrong with the Service.

        Ports that can't be served are left out. Raises InvalidConfiguration where what is wrong decides members.
        """
        ...
