"""The model of a load balancer: desired state, observed state, and owner.

A cloud's `build` computes the desired model of a Service from the Service, its backends and the cloud's `facts`; its
`read` returns the observed models. `diff` plans the `operations` from one to the other, and each operation is one small
method of the cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from cloud_controller.load_balancers.backends import Backends, Member, NodeBackend
from cloud_controller.load_balancers.catalogue import Catalogue, Value
from cloud_controller.load_balancers.facts import Facts
from cloud_controller.load_balancers.nameable import Named

Object = dict[str, Any]
"""A Kubernetes object as plain JSON."""

CLUSTER_TAG = "kubernetes.io/cluster"
SERVICE_UID_TAG = "kubernetes.io/service-uid"
SERVICE_TAG = "kubernetes.io/service"
CLUSTER_UID_TAG = "cloud-controller/cluster-uid"
"""The cluster that a resource was created for: the UID of its namespace `kube-system` (see `binding`)."""
PRESERVED_TAG = "cloud-controller/preserved-from"
"""On a preserved resource: the CLUSTER/NAMESPACE/NAME of the Service that owned it. It no longer has an owner."""

# ------------------------------------------------------------------------------------------------------- ownership


@dataclass(frozen=True, slots=True)
class Owner:
    """The Service that owns a load balancer, identified by cluster and UID; the name is informative.

    `namespace` and `name` are empty if the tag that holds them was removed.
    """

    cluster_id: str
    uid: str
    namespace: str
    name: str

    @property
    def load_balancer_name(self) -> str:
        """The display name. NOT UNIQUE: `a-b` in `c` and `b` in `c-a` share one."""
        return f"{self.cluster_id}-{self.namespace}-{self.name}"

    @property
    def client_token(self) -> str:
        """The idempotency token of the Service's first load balancer."""
        return f"{self.cluster_id}-{self.uid}"

    @property
    def tags(self) -> dict[str, str]:
        """The tags of all resources of the Service, set in the create call."""
        return {
            CLUSTER_TAG: self.cluster_id,
            SERVICE_UID_TAG: self.uid,
            SERVICE_TAG: f"{self.namespace}/{self.name}",
        }

    def released(self, tags: Mapping[str, str]) -> dict[str, str]:
        """The tags for a preserved resource: the owner's tags are replaced with `PRESERVED_TAG`."""
        rest = {key: value for key, value in tags.items() if key not in {*self.tags, CLUSTER_UID_TAG}}
        return rest | {PRESERVED_TAG: f"{self.cluster_id}/{self.namespace}/{self.name}"}

    def owns(self, tags: Mapping[str, str]) -> bool:
        """Whether a resource with these tags belongs to this Service, by cluster and UID."""
        return tags.get(CLUSTER_TAG) == self.cluster_id and tags.get(SERVICE_UID_TAG) == self.uid

    def __str__(self) -> str:
        service = f"Service {self.namespace}/{self.name}" if self.name else f"the Service with UID {self.uid}"
        return f"{service} of cluster {self.cluster_id}"

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> Owner | None:
        """The owner in the tags, or None if cluster or UID is missing."""
        cluster_id, uid = tags.get(CLUSTER_TAG), tags.get(SERVICE_UID_TAG)
        if not cluster_id or not uid:
            return None
        namespace, _, name = tags.get(SERVICE_TAG, "").partition("/")
        return cls(cluster_id, uid, namespace, name) if namespace and name else cls(cluster_id, uid, "", "")


# ----------------------------------------------------------------------------------------------------------- model


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How the health of members is checked. Protocol `NONE`: not at all. `port` None: the member's port.

    `success_codes`: the HTTP codes of a healthy member; None if the cloud or the protocol has none.
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
    """Members that serve the same port: a cloud's backend set, target group or server group.

    `tags` identify the owner if the load balancer is shared.
    """

    name: str
    health_check: HealthCheck
    members: tuple[Member, ...] = ()
    attributes: Mapping[str, Value | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listener:
    """A port that the load balancer listens on, and its pool. `tags`: see `Pool`."""

    protocol: str
    port: int
    pool: str
    attributes: Mapping[str, Value | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """The listener's identity within its load balancer."""
        return (self.protocol, self.port)

    def checks(self, pool: Pool) -> bool:
        """Whether the members of its pool are checked.

        In some clouds the check is the listener's: then its attribute `health_check` is `on` or `off`.
        """
        own = self.attributes.get("health_check")
        return pool.health_check.protocol != "NONE" if own is None else own == "on"

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


@dataclass(frozen=True, slots=True)
class LoadBalancerModel:
    """A whole load balancer. `attributes` hold only what `build` sets; nothing else is compared."""

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
    """The state of a load balancer in its cloud.

    `PARTIAL`: only parts exist, in a cloud that needs several calls: a creation or deletion was interrupted. They serve
    no traffic; a creation with the same token reuses them.
    """

    PENDING = "pending"
    READY = "ready"
    FAILED = "failed"
    DELETING = "deleting"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class Ingress:
    """The address of a load balancer: an IP or a hostname. `ip_mode`: as in a Service's status."""

    ip: str | None = None
    hostname: str | None = None
    ip_mode: str | None = None

    def to_json(self) -> dict[str, str]:
        """The entry of `status.loadBalancer.ingress`."""
        parts = {"ip": self.ip, "hostname": self.hostname, "ipMode": self.ip_mode}
        return {key: value for key, value in parts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Adoptable:
    """Marks a load balancer that another controller created and that a Service may adopt (`AdoptLoadBalancer`).

    - `maker`: that controller.
    - `name`: its name for the load balancer; `LoadBalancerBuilder.foreign_name` maps Services to these names.
    - `service`: NAMESPACE/NAME from its tags, informative.
    - `refusal`: why it cannot be adopted.
    """

    maker: str
    name: str
    service: str = ""
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedLoadBalancer:
    """An existing load balancer. `created_at` only orders the load balancers of one Service.

    - `settled`: the cloud is not working on it, so polling it is pointless.
    - `network`: where its members must be, in a cloud whose load balancers can be reused.
    - `adoptable`: set while it has no owner's tags yet.
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
    def serves(self) -> bool:
        """Whether clients can reach it; some clouds give it its address only after it is ready."""
        return self.state is LoadBalancerState.READY and bool(self.ingress)

    @property
    def owner(self) -> Owner | None:
        """The Service that owns the whole load balancer, by its tags."""
        return Owner.of_tags(self.model.tags)

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Every Service that owns it or a part of it."""
        found = (Owner.of_tags(tags) for tags in (self.model.tags, *self.model.part_tags))
        return tuple(dict.fromkeys(owner for owner in found if owner is not None))


# ------------------------------------------------------------------------------------------------------------ builder


@dataclass(frozen=True, slots=True)
class Ignored:
    """A setting of a Service that the cloud does not support."""

    field: str
    value: Value
    reason: str


@dataclass(frozen=True, slots=True)
class Required:
    """What a Service's setting asks of a load balancer that it cannot change: an attribute and its value."""

    setting: str
    attribute: str
    value: Value


@dataclass(frozen=True, slots=True)
class Reuse:
    """An existing load balancer on which a Service wants its listeners.

    `force`: take over listeners without an owner. `network`: where the Service's members are. `required`: what the load
    balancer must be.
    """

    id: str
    force: bool = False
    network: str | None = None
    required: tuple[Required, ...] = ()


@dataclass(frozen=True, slots=True)
class Built:
    """The desired state of a Service on a cloud. `warnings`: events for the Service, as (reason, message).

    With `reuse`, the model's listeners and pools, tagged with their owner, belong on that load balancer; the model's
    own name, attributes and tags are unused. `named`: existing resources that annotations name. `published`: what the
    Service's status shows instead of the load balancer's addresses.
    """

    model: LoadBalancerModel
    ignored: tuple[Ignored, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    reuse: Reuse | None = None
    named: tuple[Named, ...] = ()
    published: tuple[Ingress, ...] = ()


class LoadBalancerBuilder(Protocol):
    """The pure half of a cloud's load balancers: a value without a client. NO METHOD MAY CALL THE CLOUD."""

    @property
    def catalogue(self) -> Catalogue:
        """The cloud's annotations."""
        ...

    def claims(self, service: Object) -> bool:
        """Whether this controller serves a Service of type LoadBalancer without a class or with one of its classes.

        False if an annotation assigns it to another controller: then nothing is created or reported for it.
        """
        ...

    def follows_endpoints(self, service: Object) -> bool:
        """Whether the Service's members depend on its EndpointSlices."""
        ...

    def drains(self, service: Object) -> bool:
        """Whether removed members of the Service's load balancer keep their open connections."""
        ...

    def pod_ranges(self, service: Object, facts: Facts) -> tuple[str, ...] | None:
        """If the Service's members are pods: the CIDRs of the cloud's network in which pods may have addresses.

        None if its members are node ports. Raises InvalidConfiguration if that cannot be determined, and the error in
        the facts.
        """
        ...

    def backend(self, node: Object) -> NodeBackend | None:
        """The node as a backend; None if it cannot be a member (yet)."""
        ...

    def foreign_name(self, owner: Owner) -> str | None:
        """The name that other controllers give this Service's load balancer; None: adoption is not supported."""
        ...

    def build(self, service: Object, backends: Backends, facts: Facts) -> Built:
        """The load balancer that the Service should have with these backends.

        Raises InvalidConfiguration, naming the Service's field or annotation, and the error in the facts.
        """
        ...

    def members(self, service: Object, backends: Backends) -> Mapping[tuple[str, int], tuple[Member, ...]]:
        """The members of each listener (protocol and port), even if other settings of the Service are invalid.

        Leaves out unsupported ports. Raises InvalidConfiguration if the invalid setting affects members.
        """
        ...
