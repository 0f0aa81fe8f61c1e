"""Alibaba Cloud's network load balancers (NLB): reads what exists, and performs operations.

Nearly every change is an asynchronous job of the API. `perform` sends what does not depend on each other, waits for
the jobs together, and answers what takes longer with `Postponed`; a job that fails is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, NotFound, Postponed
from cloud_controller.clouds.alicloud.nlb.api import Api, Place
from cloud_controller.clouds.alicloud.nlb.changes import Changes
from cloud_controller.clouds.alicloud.nlb.health import health_of
from cloud_controller.clouds.alicloud.nlb.instance import Instances
from cloud_controller.clouds.alicloud.nlb.jobs import Jobs
from cloud_controller.clouds.alicloud.nlb.listeners import Listeners
from cloud_controller.clouds.alicloud.nlb.memory import Memory
from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroups
from cloud_controller.clouds.alicloud.nlb.reads import NetworkReads
from cloud_controller.clouds.alicloud.nlb.server_groups import ServerGroups
from cloud_controller.clouds.alicloud.nlb.tools import Tools
from cloud_controller.clouds.alicloud.nlb.writes import Writes
from cloud_controller.clouds.alicloud.patience import SECONDS
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.joined_requests import AtWork
from cloud_controller.load_balancers.failures import Failures
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer
from cloud_controller.load_balancers.operations import (
    AddMembers,
    CreateLoadBalancer,
    Operation,
    OperationResult,
    PutPool,
)

Call = Callable[[Any], dict[str, str]]


class NetworkLoadBalancers:
    """The NLBs of one cluster. Safe to share between threads."""

    def __init__(
        self,
        client: Api,
        place: Place,
        cache: Cache,
        concurrently: ConcurrentCalls,
        *,
        patience: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`patience`: seconds for which one step of a change waits for its jobs."""
        self._memory = memory = Memory(cache)
        own_groups = OwnGroups(client, place.vpc_id, cache)
        self._at_work = AtWork()
        busy = self._at_work.number
        self._jobs = Jobs(client, busy, patience=patience, sleep=sleep, clock=cache.clock, failed=memory.not_made)
        writes = Writes(client, self._jobs)
        self._reads = NetworkReads(client, place.cluster_id, memory, own_groups, concurrently, busy)
        self._client = client
        self._changes = Changes(
            Tools(
                place,
                memory,
                self._reads,
                writes,
                ServerGroups(client, writes, memory, place.cluster_id, place.vpc_id),
                Listeners(writes, memory),
                own_groups,
                Instances(writes, own_groups),
            )
        )

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> list[ObservedLoadBalancer]:
        """See `LoadBalancers.read`."""
        if not ids and service_uids is not None and not service_uids:
            return []
        return self._reads.read(service_uids, ids)

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check, where the API knows: one call for each listener."""
        known = self._reads.known(id)
        pools = {group.id: group.pool for group in known.groups.values()}
        found: dict[tuple[str, str, int], bool] = {}
        for listener in known.listeners.values():
            try:
                answer = self._client.call("nlb", "GetListenerHealthStatus", {"ListenerId": listener.id})
            except NotFound:
                continue
            found |= health_of(answer, pools)
        return found

    def dump(self, limit: int) -> bytes:
        """See `Remembering.dump`: servers and certificates, which the API returns part by part."""
        return self._memory.dump(limit)

    def restore(self, memory: bytes) -> None:
        """See `Remembering.restore`."""
        self._memory.restore(memory)

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> list[OperationResult]:
        """See `LoadBalancers.perform`. A change is settled when its jobs have succeeded."""
        with self._at_work:
            results = _Performing(self._changes, self._jobs).run(operations)
        # Of parts without their load balancer, lists may lack some.
        whole = load_balancer is None or load_balancer.state is not LoadBalancerState.PARTIAL
        return [replace(each, settled=whole and each.done is not None) for each in results]


class _Performing:
    """One change: sends operations, and waits for the jobs of all before one that depends on them."""

    def __init__(self, changes: Changes, jobs: Jobs) -> None:
        self._changes = changes
        self._jobs = jobs
        self._failures = Failures()
        self._results: dict[int, OperationResult] = {}
        self._pending: dict[int, tuple[Operation, dict[str, str]]] = {}
        self._waits: Postponed | None = None

    def run(self, operations: Sequence[Operation]) -> list[OperationResult]:
        for index, operation in enumerate(operations):
            if any(_depends(operation, other) for other, _ in self._pending.values()):
                self._settle()
            if not self._failures.permit(operation):
                continue
            if self._waits is not None and not isinstance(operation, AddMembers):
                why = Postponed(f"it follows a change that is not done yet: {self._waits}")
                self._record(index, OperationResult(operation, why))
                continue
            try:
                if isinstance(operation, CreateLoadBalancer):
                    self._record(index, OperationResult(operation, created=self._changes.create(operation)))
                    continue
                jobs = self._changes.functions[type(operation)](operation)
            except CloudError as error:
                self._record(index, OperationResult(operation, error))
                continue
            if jobs:
                self._pending[index] = (operation, jobs)
            else:
                self._record(index, OperationResult(operation))
        self._settle()
        return [result for _, result in sorted(self._results.items(), key=lambda each: each[0])]

    def _settle(self) -> None:
        pending, self._pending = self._pending, {}
        every = {job: what for _, jobs in pending.values() for job, what in jobs.items()}
        try:
            outcomes: Mapping[str, CloudError | None] = self._jobs.outcomes(every) if every else {}
        except CloudError as error:
            # Nobody knows what became of them.
            outcomes = dict.fromkeys(every, error)
        for index, (operation, jobs) in pending.items():
            errors = [found for job in jobs if (found := outcomes[job]) is not None]
            if errors:
                self._changes.failed(operation)
            self._record(index, OperationResult(operation, errors[0] if errors else None))

    def _record(self, index: int, result: OperationResult) -> None:
        if isinstance(result.error, Postponed):
            self._waits = self._waits or result.error
        self._failures.record(result.operation, result.error)
        self._results[index] = result


def _depends(operation: Operation, pending: Operation) -> bool:
    """Whether the operation needs the pending one's job to be done. Changes of different pools do not."""
    of_pools = (PutPool, AddMembers)
    if isinstance(operation, of_pools) and isinstance(pending, of_pools):
        return _pool(operation) == _pool(pending)
    return type(operation) is not type(pending)


def _pool(operation: PutPool | AddMembers) -> str:
    return operation.pool.name if isinstance(operation, PutPool) else operation.pool
