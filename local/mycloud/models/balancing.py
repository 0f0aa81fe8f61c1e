"""Load balancers, their listeners and their backend sets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from local.mycloud.models.common import (
    Cidr,
    CloudObject,
    ClusterAddress,
    Create,
    ErrorDetail,
    Name,
    Port,
    Protocol,
    Strict,
    Update,
)

MAX_BACKEND_BATCH = 40


class ListenerSettings(Strict):
    """The changeable fields of a listener. `max_qps`: new connections (UDP: datagrams) a second, None: any."""

    backend_set: Name
    max_qps: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    idle_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    tags: dict[str, str] = {}


class Listener(ListenerSettings):
    """A port on which a load balancer listens."""

    protocol: Protocol
    port: Port


class HealthCheck(Strict):
    """How backends are checked; `port` None: the backend's own. NONE: unchecked, and each of them gets traffic."""

    protocol: Literal["TCP", "HTTP", "NONE"] = "TCP"
    port: Port | None = None
    path: Annotated[str, Field(pattern="^/[!-~]*$", max_length=1024)] = "/"
    interval_seconds: Annotated[int, Field(ge=1, le=300)] = 2
    timeout_seconds: Annotated[int, Field(ge=1, le=60)] = 1
    healthy_threshold: Annotated[int, Field(ge=1, le=10)] = 2
    unhealthy_threshold: Annotated[int, Field(ge=1, le=10)] = 2


class BackendKey(Strict):
    """Identifies a backend of a set."""

    address: ClusterAddress
    port: Port


class Backend(BackendKey):
    """The target of connections: a machine's address and a port there. Weight 0: no new connections."""

    machine_id: str
    weight: Annotated[int, Field(ge=0, le=256)] = 1


class BackendSetSettings(Strict):
    """The changeable fields of a backend set besides its backends.

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
    """The health of a backend by its checks; None: not known yet, or not `checked`."""

    backend_set: str
    address: str
    port: int
    healthy: bool | None
    checked: bool = True


class ListenerCounters(BaseModel):
    """A listener's counters since the start of the load balancer's data plane.

    Rejected, in connections (UDP: datagrams): because of `max_qps`, and because of the source ranges.
    """

    protocol: str
    port: int
    connections: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    rejected_qps: int = 0
    rejected_source: int = 0


class LoadBalancerRecord(LoadBalancer):
    """`generation` counts changes that the data plane must apply; `observed` is the last one that it has applied."""

    generation: int = 1
    observed: int = 0

    def part_tags(self) -> set[tuple[str, str]]:
        """The tags of its listeners and backend sets."""
        parts: list[Listener | BackendSet] = [*self.listeners, *self.backend_sets]
        return {pair for part in parts for pair in part.tags.items()}


class CreateLoadBalancer(Create):
    network_id: str
    scheme: Literal["internal", "internet-facing"] = "internet-facing"
    source_ranges: list[Cidr] = []
    listeners: list[Listener] = []
    backend_sets: list[BackendSet] = []


class UpdateLoadBalancer(Update):
    """Each list replaces what the load balancer has: all source ranges, all listeners, all backend sets."""

    source_ranges: list[Cidr] | None = None
    listeners: list[Listener] | None = None
    backend_sets: list[BackendSet] | None = None


class PutListener(ListenerSettings):
    pass


class PutBackendSet(BackendSetSettings):
    """`backends` None keeps the present ones."""

    backends: list[Backend] | None = None


class RegisterBackends(Strict):
    backends: Annotated[list[Backend], Field(max_length=MAX_BACKEND_BATCH)]


class DeregisterBackends(Strict):
    backends: Annotated[list[BackendKey], Field(max_length=MAX_BACKEND_BATCH)]


class BackendResult(BaseModel):
    address: str
    port: int
    error: ErrorDetail | None = None


class BackendResults(BaseModel):
    results: list[BackendResult]
