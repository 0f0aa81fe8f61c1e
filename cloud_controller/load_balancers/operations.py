"""The operations on load balancers: small and idempotent. A cloud performs all those of one change at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from cloud_controller.cloud_errors import CloudError, LeftOut
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
    """Start deleting it with all its parts; a missing one is ignored.

    `replaced`: its Service stays and has, or gets, another one, so deletion protection that the Service asked for does
    not hold it.
    """

    id: str
    replaced: bool = False


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


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The outcome of one operation: done, failed with `error`, to be performed again later (`Postponed`), or done but
    for what the cloud refused (`LeftOut`).

    - `created`: the load balancer that `CreateLoadBalancer` made.
    - `settled`: the change is complete, so nothing is read after it; a deleted load balancer is gone with all its
      parts. False: the cloud is still working on it, so it is polled. None: so are listeners and deletions.
    """

    operation: Operation
    error: CloudError | None = None
    created: ObservedLoadBalancer | None = None
    settled: bool | None = None

    @property
    def done(self) -> Operation | None:
        """What the cloud has carried out: the operation, without the members that were left out; None: nothing, or
        only a part of the settings."""
        if not isinstance(self.error, LeftOut):
            return None if self.error else self.operation
        left, operation = self.error.members, self.operation
        if isinstance(operation, AddMembers):
            return replace(operation, members=tuple(each for each in operation.members if each.key not in left))
        if isinstance(operation, PutPool) and operation.new:
            members = tuple(each for each in operation.pool.members if each.key not in left)
            return replace(operation, pool=replace(operation.pool, members=members))
        return None if isinstance(operation, UpdateLoadBalancer) else operation


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

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> Sequence[OperationResult]:
        """Perform one change of a load balancer (as last observed; None: it is created), in as few calls as possible.

        The results have the order of the operations. An operation without a result was not attempted, because an
        earlier one failed; `Failures` says which may still be attempted. Repeating an operation is safe: what exists
        is updated, what is gone is a success, and the same client token returns the same load balancer. Raises no
        CloudError; a fence's refusal is passed on.
        """
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
