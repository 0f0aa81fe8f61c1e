"""What mycloud's objects and requests look like: the types that its OpenAPI document and its database share.

A `…Record` is what the database holds: the public object and what only the server knows. Answers are made from the
public type, so a record's own fields never leave the server.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

REGION = "local"
ZONES = ("zone-a", "zone-b", "zone-c")
MACHINE_TYPES = ("m1.small", "m1.medium", "m1.large")

MAX_PAGE = 100
MAX_ROUTE_BATCH = 50
MAX_BACKEND_BATCH = 40


def now() -> str:
    """The present time as objects carry it: RFC 3339, UTC."""
    return rfc3339(datetime.now(UTC).timestamp())


def rfc3339(seconds: float) -> str:
    """A time in seconds since 1970 as objects carry it: with milliseconds, so that texts compare as times do."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _address(value: str) -> str:
    try:
        address = IPv4Address(value)
    except ValueError:
        raise ValueError(f"{value!r} is not an IPv4 address") from None
    if address not in IPv4Network("10.0.0.0/8"):
        raise ValueError(f"{value} is not in 10.0.0.0/8")
    return value


def _cidr(value: str) -> str:
    try:
        return str(ip_network(value))
    except ValueError as error:
        raise ValueError(f"{value!r} is not a CIDR: {error}") from None


def _dns_label(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        raise ValueError(f"{value!r} is not a DNS label (lower-case letters, digits and '-', at most 63)")
    return value


ClusterAddress = Annotated[str, AfterValidator(_address)]
Cidr = Annotated[str, AfterValidator(_cidr)]
"""Of IPv4 or IPv6."""
DnsLabel = Annotated[str, AfterValidator(_dns_label)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Port = Annotated[int, Field(ge=1, le=65535)]
Protocol = Literal["TCP", "UDP"]
Zone = Literal["zone-a", "zone-b", "zone-c"]
VolumeSize = Annotated[int, Field(ge=1, le=1024)]

PROCESS_ENDED = "its process ended"
"""The state reason of a machine that is stopped though nobody stopped it."""


class State(StrEnum):
    """Where an object stands in its life. Machines use the middle four instead of `available`, and never `deleting`."""

    CREATING = "creating"
    AVAILABLE = "available"
    UPDATING = "updating"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    DELETING = "deleting"
    FAILED = "failed"


class Strict(BaseModel):
    """A request's base: an unknown field is an error, not a silently lost wish."""

    model_config = ConfigDict(extra="forbid")


# --------------------------------------------------------------------------------------------------------- objects


class CloudObject(BaseModel):
    """What every object has."""

    id: str
    name: str
    tags: dict[str, str] = {}
    state: State
    state_reason: str | None = None
    created_at: str


class ZoneObject(BaseModel):
    """A zone; nobody makes or deletes one."""

    id: str
    name: str
    region: str
    state: State = State.AVAILABLE


class Network(CloudObject):
    """A network with its ranges: machines (`cidr`), pods, cluster IPs and load balancers.

    The IPv6 ones, of machines and pods, are facts alone; networks that were made before there were any have none.
    """

    cidr: str
    pod_cidr: str
    service_cidr: str
    load_balancer_cidr: str
    ipv6_cidr: str | None = None
    pod_cidr_ipv6: str | None = None
    route_table_id: str


class Subnet(CloudObject):
    """A part of a network's machine range in one zone."""

    network_id: str
    zone: str
    cidr: str


class RouteTable(CloudObject):
    """The pod routes of one network."""

    network_id: str


class Route(BaseModel):
    """Packets for `destination_cidr` go to a machine; `blackhole` once that machine is gone."""

    destination_cidr: str
    next_hop_machine_id: str
    state: Literal["active", "blackhole"] = "active"


class Cluster(CloudObject):
    """A Kubernetes control plane that the cloud runs."""

    network_id: str
    version: str | None = None
    endpoint: str | None = None
    certificate_authority: str | None = None


class Machine(CloudObject):
    """A machine that boots into a cluster as a node. `simulated`: it has no process, and nothing ever registers it."""

    network_id: str
    subnet_id: str
    zone: str
    region: str
    type: str
    cluster_id: str
    role: Literal["control-plane", "worker"]
    private_ips: list[str]
    ipv6_addresses: list[str] = []
    node_labels: dict[str, str] = {}
    register_provider_id: bool = False
    simulated: bool = False
    terminated_at: str | None = None


class ListenerSettings(Strict):
    """What may change of a listener. `max_qps`: new connections (UDP: datagrams) a second, None: any."""

    backend_set: Name
    max_qps: Annotated[int, Field(ge=1)] | None = None
    idle_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    tags: dict[str, str] = {}


class Listener(ListenerSettings):
    """A port on which a load balancer listens."""

    protocol: Protocol
    port: Port


class HealthCheck(Strict):
    """How backends are examined; `port` None: the backend's own. NONE: a backend counts as healthy unseen."""

    protocol: Literal["TCP", "HTTP", "NONE"] = "TCP"
    port: Port | None = None
    path: Annotated[str, Field(pattern="^/", max_length=1024)] = "/"
    interval_seconds: Annotated[int, Field(ge=1, le=300)] = 2
    timeout_seconds: Annotated[int, Field(ge=1, le=60)] = 1
    healthy_threshold: Annotated[int, Field(ge=1, le=10)] = 2
    unhealthy_threshold: Annotated[int, Field(ge=1, le=10)] = 2


class BackendKey(Strict):
    """What tells backends of one set apart."""

    address: ClusterAddress
    port: Port


class Backend(BackendKey):
    """Where connections go: a machine's address and a port there. Weight 0: no new connections."""

    machine_id: str
    weight: Annotated[int, Field(ge=0, le=256)] = 1


class BackendSetSettings(Strict):
    """What may change of a backend set beside its backends.

    `health_check` None: TCP, or NONE where a UDP listener uses the set. With the affinity CLIENT_IP a client keeps its
    backend for as long as it opens a new connection (UDP: session) at least every `session_affinity_timeout_seconds`.
    """

    scheduler: Literal["round_robin", "least_connections"] = "round_robin"
    session_affinity: Literal["NONE", "CLIENT_IP"] = "NONE"
    session_affinity_timeout_seconds: Annotated[int, Field(ge=1, le=86400)] = 10800
    health_check: HealthCheck | None = None
    tags: dict[str, str] = {}


class BackendSet(BackendSetSettings):
    """Backends that listeners share."""

    name: Name
    backends: list[Backend] = []


class LoadBalancer(CloudObject):
    """A load balancer with an address of its own. `source_ranges`: the clients that it serves, empty: all."""

    network_id: str
    address: str
    scheme: Literal["internal", "internet-facing"]
    source_ranges: list[str] = []
    listeners: list[Listener] = []
    backend_sets: list[BackendSet] = []


class BackendHealth(BaseModel):
    """What the health checks say of a backend; None: not known yet."""

    backend_set: str
    address: str
    port: int
    healthy: bool | None


class ListenerCounters(BaseModel):
    """What went through a listener since the load balancer's data plane started.

    Rejected, in connections (UDP: datagrams): because of `max_qps`, and because of the source ranges.
    """

    protocol: str
    port: int
    connections: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    rejected_qps: int = 0
    rejected_source: int = 0


class Attachment(BaseModel):
    """Where a volume is: the machine sees it while it is `attached`."""

    machine_id: str
    state: Literal["attaching", "attached", "detaching"]


class Volume(CloudObject):
    """A disk in a zone, which one machine at a time may have."""

    zone: str
    size_gib: int
    type: str
    attachment: Attachment | None = None


# --------------------------------------------------------------------------------------------------------- records


class NetworkRecord(Network):
    """`index`: which of the site's ranges it has. `next_lb_host`: where the search for a free address goes on."""

    index: int
    next_lb_host: int = 10


class SubnetRecord(Subnet):
    """`next_host`: where the search for a free address goes on, so that a freed one is not reused at once."""

    next_host: int = 10


class MachineRecord(Machine):
    """`intent`: where the machine shall come to. `reboot`: it has yet to go down once on the way."""

    intent: Literal["running", "stopped", "terminated"] = "running"
    reboot: bool = False
    labelled: bool = False


class LoadBalancerRecord(LoadBalancer):
    """`generation` counts changes of what the data plane must do; `observed` is the last one that it has done."""

    generation: int = 1
    observed: int = 0

    def part_tags(self) -> set[tuple[str, str]]:
        """The tags of its listeners and backend sets."""
        parts: list[Listener | BackendSet] = [*self.listeners, *self.backend_sets]
        return {pair for part in parts for pair in part.tags.items()}


# ---------------------------------------------------------------------------------------------------------- limits

Limit = Annotated[int, Field(ge=0)]


class Limits(Strict):
    """How much an account may have."""

    routes_per_table: Limit = 48
    load_balancers: Limit = 1000
    listeners_per_load_balancer: Limit = 50
    volumes: Limit = 200


class UpdateLimits(Strict):
    """The limits to change; None: as it is."""

    routes_per_table: Limit | None = None
    load_balancers: Limit | None = None
    listeners_per_load_balancer: Limit | None = None
    volumes: Limit | None = None


# -------------------------------------------------------------------------------------------------------- requests


class Create(Strict):
    """What every creation takes; `client_token` makes it idempotent."""

    name: Name
    tags: dict[str, str] = {}
    client_token: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class CreateNetwork(Create):
    pass


class CreateSubnet(Create):
    network_id: str
    zone: Zone


class CreateCluster(Create):
    network_id: str


class CreateMachine(Create):
    name: DnsLabel
    subnet_id: str
    type: Literal["m1.small", "m1.medium", "m1.large"]
    cluster_id: str
    role: Literal["control-plane", "worker"]
    node_labels: dict[str, str] = {}
    register_provider_id: bool = False


class CreateLoadBalancer(Create):
    network_id: str
    scheme: Literal["internal", "internet-facing"] = "internet-facing"
    source_ranges: list[Cidr] = []
    listeners: list[Listener] = []
    backend_sets: list[BackendSet] = []


class CreateVolume(Create):
    zone: Zone
    size_gib: VolumeSize
    type: Literal["standard"] = "standard"


class AttachVolume(Strict):
    """The machine to which a volume is to be attached, or from which it is to be detached."""

    machine_id: str


class ResizeVolume(Strict):
    size_gib: VolumeSize


class Update(Strict):
    """What a PATCH may change; what is left out stays. `tags` replaces all tags."""

    name: Name | None = None
    tags: dict[str, str] | None = None


class UpdateLoadBalancer(Update):
    """Each list replaces what the load balancer has: all source ranges, all listeners, all backend sets."""

    source_ranges: list[Cidr] | None = None
    listeners: list[Listener] | None = None
    backend_sets: list[BackendSet] | None = None


class PutListener(ListenerSettings):
    pass


class PutBackendSet(BackendSetSettings):
    """`backends` None keeps those that the set has."""

    backends: list[Backend] | None = None


class NewRoute(Strict):
    destination_cidr: Cidr
    next_hop_machine_id: str


class CreateRoutes(Strict):
    routes: Annotated[list[NewRoute], Field(max_length=MAX_ROUTE_BATCH)]


class DeleteRoutes(Strict):
    destination_cidrs: Annotated[list[Cidr], Field(max_length=MAX_ROUTE_BATCH)]


class RegisterBackends(Strict):
    backends: Annotated[list[Backend], Field(max_length=MAX_BACKEND_BATCH)]


class DeregisterBackends(Strict):
    backends: Annotated[list[BackendKey], Field(max_length=MAX_BACKEND_BATCH)]


class CredentialsRequest(Strict):
    ttl_seconds: Annotated[int, Field(ge=60, le=86400)] = 3600


class SimulateMachines(Strict):
    """Machines of which nothing runs, spread over the subnets in turn; their names are the prefix and a number."""

    cluster_id: str
    subnet_ids: Annotated[list[str], Field(min_length=1)]
    count: Annotated[int, Field(ge=1, le=10000)]
    name_prefix: Annotated[str, Field(pattern="^[a-z0-9][-a-z0-9]*$", max_length=58)] = "node-"
    tags: dict[str, str] = {}


class CreateToken(Strict):
    """A further token. `operations`: globs over "METHOD PATH" of what it may do, None: all that users call."""

    ttl_seconds: Annotated[int, Field(ge=1, le=31536000)]
    operations: list[str] | None = None


class CheckAccess(Strict):
    """Which of these operations ("METHOD PATH") may not be done?"""

    operations: Annotated[list[Annotated[str, Field(pattern="^[A-Z]+ /")]], Field(max_length=1000)]


class Lag(Strict):
    """For how long lists do not show what was made."""

    lag_seconds: Annotated[float, Field(ge=0, le=3600)]


class Fault(Strict):
    """Make calls of an operation (a glob over "METHOD PATH") fail in a given way, or wait (`latency`: `seconds`).

    The first `after` calls that match go through; each later one fails with `probability`, until `count` have (None:
    until the fault is deleted). `error`: the operation is not done, the answer has `status` and `code` (None: the
    status's own). `retry_after`, in seconds: what a throttled caller is told.
    """

    operation: str
    kind: Literal["throttle", "drop_answer", "error", "latency"]
    count: Annotated[int, Field(ge=1)] | None = 1
    probability: Annotated[float, Field(ge=0, le=1)] = 1
    after: Annotated[int, Field(ge=0)] = 0
    retry_after: Annotated[float, Field(ge=0)] = 1
    seconds: Annotated[float, Field(ge=0, le=3600)] = 1
    status: Annotated[int, Field(ge=400, le=599)] = 503
    code: Annotated[str, Field(min_length=1)] | None = None


# --------------------------------------------------------------------------------------------------------- answers

Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """One page of a collection; `next_cursor` None: the last."""

    items: list[Item]
    next_cursor: str | None = None


class Items(BaseModel, Generic[Item]):
    """A list that is never paged."""

    items: list[Item]


class ErrorDetail(BaseModel):
    code: str
    message: str
    field: str | None = None
    allowed: str | None = None


class ErrorAnswer(BaseModel):
    error: ErrorDetail


class RouteResult(BaseModel):
    destination_cidr: str
    error: ErrorDetail | None = None


class BackendResult(BaseModel):
    address: str
    port: int
    error: ErrorDetail | None = None


class BackendResults(BaseModel):
    results: list[BackendResult]


class RouteResults(BaseModel):
    results: list[RouteResult]


class Kubeconfig(BaseModel):
    kubeconfig: str


class Calls(BaseModel):
    calls: dict[str, int]


class IssuedToken(BaseModel):
    """A secret, which is told only once."""

    token: str
    expires_at: str


class MadeMachines(BaseModel):
    """How many were made."""

    machines: int


class Quotas(BaseModel):
    quotas: Limits


class AccessAnswer(BaseModel):
    denied: list[str]


Json = dict[str, Any]
