"""The operations on load balancers: small, idempotent, and one method of a cloud each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.facts import Facts
from cloud_controller.load_balancers.model import (
    Listener,
    LoadBalancerBuilder,
    LoadBalancerModel,
    Object,
    ObservedLoadBalancer,
    Pool,
)


@dataclass(frozen=True, slots=True)
class CreateLoadBalancer:
    """Create the whole load balancer. The client token makes a retry after a lost response safe."""

    model: LoadBalancerModel
    client_token: str


@dataclass(frozen=True, slots=True)
class AdoptLoadBalancer:
    """Tag a load balancer of another controller, and all its parts, with its new owner. Nothing else changes.

    The load balancer itself is tagged last: without the tags, the adoption is incomplete and is repeated.
    """

    id: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UpdateLoadBalancer:
    """Set its name, tags and attributes."""

    id: str
    model: LoadBalancerModel


@dataclass(frozen=True, slots=True)
class PutPool:
    """Create the pool with its members, or update an existing pool except its members."""

    id: str
    pool: Pool
    new: bool


@dataclass(frozen=True, slots=True)
class AddMembers:
    """Add these members; existing ones with the same address and port are updated."""

    id: str
    pool: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    """Remove these members; missing ones are ignored.

    `successors`: the members that stay. `hand_over`: these are new, so the old ones must serve until a new one is
    healthy. Otherwise the port would have no backend between two health checks.
    """

    id: str
    pool: str
    members: tuple[Member, ...]
    successors: tuple[Member, ...] = ()
    hand_over: bool = False


@dataclass(frozen=True, slots=True)
class PutListener:
    """Create or update the listener.

    `instead_of`: the pool of a taken-over listener, which must serve until a member of the new pool is healthy.
    """

    id: str
    listener: Listener
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteListener:
    """Delete the listener; a missing one is ignored."""

    id: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class DeletePool:
    """Delete the pool; a missing one is ignored."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class DeleteLoadBalancer:
    """Start deleting it with all its parts; a missing one is ignored."""

    id: str


Operation = (
    CreateLoadBalancer
    | AdoptLoadBalancer
    | UpdateLoadBalancer
    | PutPool
    | AddMembers
    | RemoveMembers
    | PutListener
    | DeleteListener
    | DeletePool
    | DeleteLoadBalancer
)


class LoadBalancers(Protocol):
    """The load balancers of one cluster in its cloud (upstream: LoadBalancer).

    Touches only resources with this cluster's tag, and those that an annotation names.
    """

    @property
    def builder(self) -> LoadBalancerBuilder:
        """What can be computed without calling the cloud."""
        ...

    def facts(
        self, services: Sequence[Object], slices: Mapping[str, Sequence[Object]], with_tags: Collection[str]
    ) -> Facts:
        """Read in few calls what the builds of these Services depend on; cached, so that a settled Service costs none.

        `slices`: EndpointSlices by Service (NAMESPACE/NAME), also with endpoints that will be excluded. `with_tags`:
        the kinds of `Built.named` resources whose tags are needed. A configuration or a missing right that prevents a
        read is part of the facts (see `Fact`), and `build` raises it.
        """
        ...

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        """Read the cluster's load balancers, or those of these Services, including those with parts of theirs.

        Load balancers that another controller created for this cluster are included as `adoptable`. `ids` are read too,
        whatever their tags; A LOAD BALANCER THAT IS ABSENT FROM THE RESULT COUNTS AS DELETED. Use few calls, but never
        rely only on a list that may lag behind recent changes.
        """
        ...

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member (pool, address, port) is healthy; members of unknown health are absent."""
        ...

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it and return it; the same token again returns the same one."""
        ...

    def adopt(self, operation: AdoptLoadBalancer) -> None:
        """Tag it and its parts with the owner. Raises Conflict if it has another owner by now."""
        ...

    def update(self, operation: UpdateLoadBalancer) -> None:
        """Set its name, its tags (exactly these) and its changeable attributes."""
        ...

    def put_pool(self, operation: PutPool) -> None:
        """Create the pool, or update its settings."""
        ...

    def add_members(self, operation: AddMembers) -> None:
        """Add or update the members."""
        ...

    def remove_members(self, operation: RemoveMembers) -> None:
        """Remove the members."""
        ...

    def put_listener(self, operation: PutListener) -> None:
        """Create or update the listener."""
        ...

    def delete_listener(self, operation: DeleteListener) -> None:
        """Delete the listener."""
        ...

    def delete_pool(self, operation: DeletePool) -> None:
        """Delete the pool."""
        ...

    def delete(self, operation: DeleteLoadBalancer) -> None:
        """Start deleting it with all its parts."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """Load balancers that cache details which the cloud returns one load balancer at a time, and can save the cache.

    The cache must stay correct as long as only this controller changes the cloud; what a list shows as changed is read
    again anyway.
    """

    def dump(self, limit: int) -> bytes:
        """Serialize the cache, at most `limit` bytes of it; deterministic while nothing changes."""
        ...

    def restore(self, memory: bytes) -> None:
        """Load a `dump`. Raises ValueError, leaving the cache empty, if it is invalid."""
        ...


def carry_out(load_balancers: LoadBalancers, operation: Operation) -> ObservedLoadBalancer | None:
    """Carry out one operation and return the load balancer if one was created. Idempotent; raises CloudError."""
    match operation:
        case CreateLoadBalancer():
            return load_balancers.create(operation)
        case AdoptLoadBalancer():
            load_balancers.adopt(operation)
        case UpdateLoadBalancer():
            load_balancers.update(operation)
        case PutPool():
            load_balancers.put_pool(operation)
        case AddMembers():
            load_balancers.add_members(operation)
        case RemoveMembers():
            load_balancers.remove_members(operation)
        case PutListener():
            load_balancers.put_listener(operation)
        case DeleteListener():
            load_balancers.delete_listener(operation)
        case DeletePool():
            load_balancers.delete_pool(operation)
        case DeleteLoadBalancer():
            load_balancers.delete(operation)
    return None
