"""AWS's load balancers: reads what exists, and applies operations to the matching kind.

Security groups or target groups without a load balancer appear as one with state PARTIAL, whatever its kind was.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence

from cloud_controller.cloud import CloudError, Conflict
from cloud_controller.clouds.aws import upstream
from cloud_controller.clouds.aws.build import AwsBuilder
from cloud_controller.clouds.aws.build_facts import BuildFacts, BuildFactsReader
from cloud_controller.clouds.aws.classic_load_balancer import ClassicLoadBalancers
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.config import Config
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
    Operation,
    OperationResult,
)

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
        self._classic_ids: set[str] = set()
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
        self._remember_kind(*(lb.id for lb in classic))
        found = [*upstream.told_apart(network, classic)]
        with self._lock:
            self._twofold = {lb.id for lb in network} & {lb.id for lb in classic}
        found += self._left_behind(found, left)
        foreign = {upstream.name_for(uid) for uid in service_uids or ()}
        return [lb for lb in found if service_uids is None or lb.id in {*ids, *foreign} or _uid(lb) in service_uids]

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check; members of unknown health are absent."""
        return self._of(id).health(id)

    def _some(self, ids: Collection[str]) -> list[ObservedLoadBalancer]:
        with self._lock:
            classic_ids, twofold = self._classic_ids & {*ids}, self._twofold & {*ids}
        if twofold:
            return [lb for lb in self.read() if lb.id in ids]
        network_ids = {*ids} - classic_ids
        found: list[ObservedLoadBalancer] = []
        if network_ids:
            found += self._network.read_some(network_ids)
        if classic_ids:
            found += self._classic.read(classic_ids)
        missing = {*ids} - {lb.id for lb in found}
        if missing:
            # The cluster's other load balancers need not be read: parts are found by the missing IDs.
            left = self._network.target_groups_left_behind({lb.id for lb in found})
            found += (lb for lb in self._left_behind(found, left) if lb.id in missing)
        return found

    def _left_behind(
        self, found: Iterable[ObservedLoadBalancer], target_groups: Mapping[str, Mapping[str, str]]
    ) -> list[ObservedLoadBalancer]:
        security_groups = self._groups.left_behind({lb.id for lb in found})
        return [self._partial(lb_id, tags) for lb_id, tags in {**security_groups, **target_groups}.items()]

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
        return one_by_one(operations, functions)

    def _adopt_groups(self, operation: AdoptLoadBalancer) -> None:
        self._groups.adopt(operation.id, (), operation.tags)

    def _create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        try:
            if operation.model.attributes["type"] == "network":
                return self._network.create(operation)
            # Recorded before the creation: if it is interrupted, or no list shows it yet, its kind is still known.
            self._remember_kind(load_balancer_name(operation.model, operation.client_token))
            return self._classic.create(operation)
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

    def _is_classic(self, lb_id: str) -> bool:
        with self._lock:
            return lb_id in self._classic_ids

    def _of(self, lb_id: str) -> NetworkLoadBalancers | ClassicLoadBalancers:
        return self._classic if self._is_classic(lb_id) else self._network

    def _remember_kind(self, *classic: str) -> None:
        with self._lock:
            self._classic_ids.update(classic)


def _uid(lb: ObservedLoadBalancer) -> str | None:
    return lb.owner.uid if lb.owner else None
