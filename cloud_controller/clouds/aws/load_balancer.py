"""AWS's load balancers: reads what exists, and applies operations to the matching kind.

Security groups or target groups without a load balancer appear as one with state PARTIAL, whatever its kind was.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence

from cloud_controller.cloud import CloudError, Conflict
from cloud_controller.clouds.aws import upstream
from cloud_controller.clouds.aws.build import AwsBuilder
from cloud_controller.clouds.aws.build_facts import BuildFactsReader
from cloud_controller.clouds.aws.classic_load_balancer import ClassicLoadBalancers
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.facts import BuildFacts
from cloud_controller.clouds.aws.memory_text import from_bytes, to_bytes
from cloud_controller.clouds.aws.names import load_balancer_name
from cloud_controller.clouds.aws.network_load_balancer import NetworkLoadBalancers
from cloud_controller.clouds.aws.network_model import name_of
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.failures import one_by_one
from cloud_controller.load_balancers.model import (
    CLUSTER_UID_TAG,
    LoadBalancerModel,
    LoadBalancerState,
    Object,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import (
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteLoadBalancer,
    Operation,
    OperationResult,
)

_Kind = NetworkLoadBalancers | ClassicLoadBalancers

_FRESH = 60.0
"""Seconds for which the VPC's state is not read again when all load balancers are read."""


class AwsLoadBalancers:
    """The load balancers with one cluster's tags. Safe to share between threads."""

    def __init__(
        self, api: Api, config: Config, vpc_state: VpcState, cache: Cache, concurrently: ConcurrentCalls
    ) -> None:
        self._config = config
        self._vpc_state = vpc_state
        self._builder = AwsBuilder(config)
        self._facts = BuildFactsReader(api, config, vpc_state, cache)
        # Each kind makes concurrent calls itself; on the same threads, reads would deadlock waiting for one another.
        self._kinds = ConcurrentCalls()
        self._groups = SecurityGroups(api, config, vpc_state)
        self._network = NetworkLoadBalancers(api, config, vpc_state, self._groups, cache, concurrently)
        self._classic = ClassicLoadBalancers(api, config, vpc_state, self._groups, cache, concurrently)
        self._lock = threading.Lock()
        self._kind_of: dict[str, _Kind] = {}
        self._gone: set[str] = set()
        """Deleted by this process, or not found by name: parts may be left, but no list lacks them by mistake."""
        self._twofold: set[str] = set()

    @property
    def builder(self) -> AwsBuilder:
        """What Services and nodes become; pure."""
        return self._builder

    # -------------------------------------------------------------------------------------------------------- reads

    def facts(
        self, services: Sequence[Object], slices: Mapping[str, Sequence[Object]], with_tags: Collection[str]
    ) -> Fact[BuildFacts]:
        """See `LoadBalancers.facts`."""
        return Fact.read(lambda: self._facts.read(services, slices, with_tags))

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        """All load balancers of this cluster, or those of these Services; and those with these IDs.

        With `ids` alone, reads only what the cache requires.
        """
        if service_uids is not None and not service_uids:
            return self._some(ids)
        # For single Services, the cause may be a resource that this process has not seen.
        self._vpc_state.facts(max_age=_FRESH if service_uids is None else 0.0)
        (network, left), (classic,) = self._kinds.both(self._network.read, [self._classic.read])
        found = [*upstream.told_apart(network, classic)]
        with self._lock:
            self._twofold = {lb.id for lb in network} & {lb.id for lb in classic}
            self._kind_of |= dict.fromkeys((*left, *(lb.id for lb in network)), self._network)
            self._kind_of |= dict.fromkeys((lb.id for lb in classic), self._classic)
        found += self._unlisted({*ids} - {lb.id for lb in found})
        if service_uids is None and self._groups.left_behind({lb.id for lb in found}):
            self._vpc_state.facts(max_age=0.0)  # What was read before its load balancer was gone proves nothing.
        found += self._left_behind(found, left)
        foreign = {upstream.name_for(uid) for uid in service_uids or ()}
        return [lb for lb in found if service_uids is None or lb.id in {*ids, *foreign} or _uid(lb) in service_uids]

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check; members of unknown health are absent."""
        return self._of(id).health(id)

    def _some(self, ids: Collection[str]) -> list[ObservedLoadBalancer]:
        with self._lock:
            classic_ids = {each for each in ids if self._kind_of.get(each) is self._classic}
            twofold = self._twofold & {*ids}
        if twofold:
            return [lb for lb in self.read() if lb.id in ids]
        if len(ids) == 1:
            found = self._named(*ids)
        else:
            found = [*self._network.read_some({*ids} - classic_ids), *self._classic.read(classic_ids)]
            found += self._unlisted({*ids} - {lb.id for lb in found})
        missing = {*ids} - {lb.id for lb in found}
        if missing:
            # The cluster's other load balancers need not be read: parts are found by the missing IDs.
            left = self._network.target_groups_left_behind({lb.id for lb in found})
            found += (lb for lb in self._left_behind(found, left) if lb.id in missing)
        return found

    def _unlisted(self, ids: Collection[str]) -> list[ObservedLoadBalancer]:
        """Those of these that exist although a list lacks them: lists lag."""
        with self._lock:
            unknown = {*ids} - self._gone
        return [lb for each in sorted(unknown) for lb in self._named(each)]

    def _named(self, lb_id: str) -> list[ObservedLoadBalancer]:
        """The load balancer with this ID, not from a list."""
        with self._lock:
            kind = self._kind_of.get(lb_id)
        network = [] if kind is self._classic else self._network.read_some([lb_id])
        classic = [] if network or kind is self._network else self._classic.read([lb_id])
        with self._lock:
            if not network and not classic:
                self._gone.add(lb_id)
            # Where only parts are left, either kind can delete them.
            self._kind_of.setdefault(lb_id, self._classic if classic else self._network)
        return network or classic

    def _left_behind(
        self, found: Iterable[ObservedLoadBalancer], target_groups: Mapping[str, Mapping[str, str]]
    ) -> list[ObservedLoadBalancer]:
        present = {lb.id for lb in found}
        left = {**self._groups.left_behind(present), **target_groups}
        return [self._partial(lb_id, tags) for lb_id, tags in left.items() if lb_id not in present]

    def _partial(self, lb_id: str, tags: Mapping[str, str]) -> ObservedLoadBalancer:
        vpc_id = self._vpc_state.facts().vpc_id
        adoptable = upstream.adoptable(lb_id, vpc_id, tags, self._config, vpc_id)
        if adoptable is not None:
            return upstream.not_adopted(lb_id, adoptable, LoadBalancerState.PARTIAL)
        owner = Owner.of_tags(tags)
        if owner and owner.name:
            tags = owner.tags | {key: value for key, value in tags.items() if key == CLUSTER_UID_TAG}
        model = LoadBalancerModel(name_of(tags) or lb_id, tags=tags)
        return ObservedLoadBalancer(lb_id, LoadBalancerState.PARTIAL, model, settled=False)

    # ------------------------------------------------------------------------------------------------------- writes

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> list[OperationResult]:
        """The operations singly, because AWS's API takes them so; each makes concurrent calls itself."""
        first = operations[0]
        if isinstance(first, CreateLoadBalancer):
            return one_by_one(operations, {CreateLoadBalancer: self._create})
        functions = self._of(first.id).functions
        if load_balancer is not None and load_balancer.state is LoadBalancerState.PARTIAL:
            functions = {**functions, AdoptLoadBalancer: self._adopt_groups}
        results = one_by_one(operations, functions)
        deleted = [each for each in results if isinstance(each.operation, DeleteLoadBalancer) and each.error is None]
        if deleted:
            with self._lock:
                self._gone.add(first.id)
        return results

    def _adopt_groups(self, operation: AdoptLoadBalancer) -> None:
        self._groups.adopt(operation.id, (), operation.tags)

    def _create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        # Recorded before the creation: if it is interrupted, or no list shows it yet, its kind is still known.
        kind: _Kind = self._network if operation.model.attributes["type"] == "network" else self._classic
        name = load_balancer_name(operation.model, operation.client_token)
        with self._lock:
            self._kind_of[name] = kind
            self._gone.discard(name)
        try:
            return kind.create(operation)
        except Conflict as error:
            # The controller reads Conflict as another owner's token and retries with a new one. AWS's own conflicts (an
            # Elastic IP address in use) are not about names.
            if error_code(error):
                raise CloudError(str(error)) from error.__cause__
            raise

    # ---------------------------------------------------------------------------------------------------- a restart

    def dump(self, limit: int) -> bytes:
        """See `Remembering.dump`: the details that AWS returns one by one."""
        return to_bytes(*self._network.memory.saved(), self._classic.details, limit=limit)

    def restore(self, memory: bytes) -> None:
        """See `Remembering.restore`."""
        known, tags, classic = from_bytes(memory)
        self._network.memory.restore(known, tags)
        self._classic.restore(classic)

    # ------------------------------------------------------------------------------------------------------ helpers

    def _of(self, lb_id: str) -> _Kind:
        with self._lock:
            return self._kind_of.get(lb_id, self._network)


def _uid(lb: ObservedLoadBalancer) -> str | None:
    return lb.owner.uid if lb.owner else None
