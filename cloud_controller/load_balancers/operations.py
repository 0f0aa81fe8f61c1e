"""The steps by which a load balancer is made and changed: each small, idempotent and one method of a cloud."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import (
    Listener,
    LoadBalancerBuilder,
    LoadBalancerModel,
    ObservedLoadBalancer,
    Pool,
)


@dataclass(frozen=True, slots=True)
class CreateLoadBalancer:
    """Make it whole, in one call. The token makes a repetition after a lost answer harmless."""

    model: LoadBalancerModel
    client_token: str


@dataclass(frozen=True, slots=True)
class AdoptLoadBalancer:
    """Give these tags of its new owner to it and to all its parts, which another controller made. Nothing else changes.

    The load balancer itself gets them last: as long as it lacks them, the adoption is incomplete.
    """

    id: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UpdateLoadBalancer:
    """Give it this name, these tags and these attributes."""

    id: str
    model: LoadBalancerModel


@dataclass(frozen=True, slots=True)
class PutPool:
    """Make the pool with its members, or give an existing one these settings and leave its members."""

    id: str
    pool: Pool
    new: bool


@dataclass(frozen=True, slots=True)
class AddMembers:
    """Add these members, or change those of the same address and port."""

    id: str
    pool: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class RemoveMembers:
    """Take these members out; those that are gone already do not matter.

    `successors` are the members that stay. `hand_over`: they are new, so the old ones must serve until one of them is
    found healthy, else the port would be without any backend between two health checks.
    """

    id: str
    pool: str
    members: tuple[Member, ...]
    successors: tuple[Member, ...] = ()
    hand_over: bool = False


@dataclass(frozen=True, slots=True)
class PutListener:
    """Make the listener or change it.

    `instead_of`: the pool that the listener of somebody else leads to, who must serve until a member of the new pool is
    found healthy.
    """

    id: str
    listener: Listener
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteListener:
    """Delete the listener; one that is gone already does not matter."""

    id: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class DeletePool:
    """Delete the pool; one that is gone already does not matter."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class DeleteLoadBalancer:
    """Begin to delete it with all its parts; one that is gone already does not matter."""

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


class LoadBalancers(LoadBalancerBuilder, Protocol):
    """The load balancers of one cluster in its cloud (upstream: LoadBalancer).

    Only what carries this cluster's tag is ever touched, and what an annotation of a Service names.
    """

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        """Those that carry this cluster's tag, or those of these Services, on themselves or on one of their parts.

        Those that another controller of the cloud made for this cluster are among them, as `adoptable`.
        `ids` are looked for besides, whatever their tags: one that is absent from the answer does not exist. In as few
        calls as the cloud allows, but never from a list alone that may be behind what was just made.
        """
        ...

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member (pool, address, port) passes its check; those of which nothing is known are absent."""
        ...

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Make it whole, and answer what came of it; the same token again makes no second one."""
        ...

    def adopt(self, operation: AdoptLoadBalancer) -> None:
        """Give the owner's tags to it and to its parts. Raises Conflict where it has another owner by now."""
        ...

    def update(self, operation: UpdateLoadBalancer) -> None:
        """Give it this name, exactly these tags, and the attributes that can be changed."""
        ...

    def put_pool(self, operation: PutPool) -> None:
        """Make the pool, or change its settings."""
        ...

    def add_members(self, operation: AddMembers) -> None:
        """Add the members, or change them."""
        ...

    def remove_members(self, operation: RemoveMembers) -> None:
        """Take the members out."""
        ...

    def put_listener(self, operation: PutListener) -> None:
        """Make the listener, or change it."""
        ...

    def delete_listener(self, operation: DeleteListener) -> None:
        """Delete the listener."""
        ...

    def delete_pool(self, operation: DeletePool) -> None:
        """Delete the pool."""
        ...

    def delete(self, operation: DeleteLoadBalancer) -> None:
        """Begin to delete it with all its parts."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """Load balancers of a cloud that tells details one by one: what was read of them once can be kept for a restart.

    What is remembered must be true as long as nobody but this controller changes the cloud; what a list shows to have
    changed is read again all the same.
    """

    def dump(self, limit: int) -> bytes:
        """All that is remembered, or as much of it as `limit` bytes hold; equal where nothing has changed."""
        ...

    def restore(self, memory: bytes) -> None:
        """Remember what a `dump` was made of. Raises ValueError for what is none, with nothing remembered."""
        ...


def carry_out(load_balancers: LoadBalancers, operation: Operation) -> ObservedLoadBalancer | None:
    """Do one operation; answers a load balancer that was made.

    Each may be repeated. Raises the errors of `cloud_controller.cloud`.
    """
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
