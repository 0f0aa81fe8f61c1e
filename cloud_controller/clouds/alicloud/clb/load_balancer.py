"""Classic load balancers: reads, health and changes of one cluster's."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.alicloud.clb.changes import Changes
from cloud_controller.clouds.alicloud.clb.groups import Groups
from cloud_controller.clouds.alicloud.clb.listeners import Listeners
from cloud_controller.clouds.alicloud.clb.memory import Memory
from cloud_controller.clouds.alicloud.clb.reads import Reads
from cloud_controller.clouds.alicloud.clb.request import Place
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.patience import Patience, PatientClient
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.failures import one_by_one
from cloud_controller.load_balancers.model import ObservedLoadBalancer
from cloud_controller.load_balancers.operations import Operation, OperationResult

_HEALTH = {"normal": True, "abnormal": False}


class ClassicLoadBalancers:
    """The classic load balancers of one cluster. Safe to share between threads."""

    def __init__(
        self,
        client: Client,
        place: Place,
        cache: Cache,
        concurrently: ConcurrentCalls,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._place = place
        self._memory = Memory(cache)
        self._reads = Reads(client, place.cluster_id, self._memory, concurrently)
        self._patient = PatientClient(client, Patience(sleep=sleep, clock=cache.clock))
        self._groups = Groups(self._patient, place.vpc_id, self._memory)
        self._listeners = Listeners(self._patient, self._memory, self._reads)

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> list[ObservedLoadBalancer]:
        """See `LoadBalancers.read`."""
        return self._reads.read(service_uids, ids)

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check; members of unknown health are absent.

        A group may serve several listeners: a member that one of them finds healthy is.
        """
        try:
            answer = self._client.call("slb", "DescribeHealthStatus", {"LoadBalancerId": id})
        except NotFound:
            return {}
        lb = next(iter(self._reads.read((), (id,))), None)
        pools = {each.key: each.pool for each in lb.model.listeners} if lb else {}
        members = {
            (pool.name, member.key): member for pool in (lb.model.pools if lb else ()) for member in pool.members
        }
        found: dict[tuple[str, str, int], bool] = {}
        for each in (answer.get("BackendServers") or {}).get("BackendServer") or []:
            transport = "UDP" if str(each.get("Protocol")).lower() == "udp" else "TCP"
            pool = pools.get((transport, int(each.get("ListenerPort") or 0)))
            port = int(each.get("Port") or 0)
            healthy = _HEALTH.get(str(each.get("ServerHealthStatus")))
            addresses = [str(each.get(name) or "") for name in ("ServerId", "ServerIp")]
            # A node is known by its instance's ID, a pod by its address: of a pod, the ID is its interface's.
            address = next((a for a in addresses if (pool, (a, port)) in members), None)
            if pool and address and healthy is not None:
                key = (pool, address, port)
                found[key] = found.get(key, False) or healthy
        return found

    def dump(self, limit: int) -> bytes:
        """See `Remembering.dump`: the details that the API returns one by one."""
        return self._memory.dump(limit)

    def restore(self, memory: bytes) -> None:
        """See `Remembering.restore`."""
        self._memory.restore(memory)

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> list[OperationResult]:
        """The operations singly, as CLB's API takes them. What exists as wanted is not written again."""
        # So that a process that no longer leads never takes such an operation for done.
        self._client.fence()
        changes = Changes(
            self._patient, self._place.vpc_id, self._memory, self._reads, self._groups, self._listeners, load_balancer
        )
        results = one_by_one(operations, changes.functions)
        # CLB's API answers when a change is made; what it configures meanwhile only delays the next one.
        return [replace(each, settled=each.done is not None) for each in results]
