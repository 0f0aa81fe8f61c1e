"""Octavia's load balancers: reads what exists, and performs operations.

Octavia accepts one change of a load balancer at a time and takes a while for each. So `perform` sends one, answers what
is left with `Postponed`, and the Service comes again from the queue when Octavia has finished: no worker waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from cloud_controller.cloud_errors import CloudError, Conflict, InvalidConfiguration, Postponed
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia.build import OctaviaBuilder
from cloud_controller.clouds.openstack.octavia.changes import Changes
from cloud_controller.clouds.openstack.octavia.floating_ips import FloatingIps
from cloud_controller.clouds.openstack.octavia.node_groups import NodeGroups
from cloud_controller.clouds.openstack.octavia.options import LoadBalancerOptions
from cloud_controller.clouds.openstack.octavia.reads import Reads
from cloud_controller.clouds.openstack.octavia.sent import Sent
from cloud_controller.clouds.openstack.octavia.topology import Topology
from cloud_controller.clouds.openstack.octavia.wire import OCTAVIA, observed
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.failures import Failures
from cloud_controller.load_balancers.model import LoadBalancerState, Object, ObservedLoadBalancer
from cloud_controller.load_balancers.operations import (
    CreateLoadBalancer,
    DeleteLoadBalancer,
    Operation,
    OperationResult,
)

_TOPOLOGY_SECONDS = 300.0


class OctaviaLoadBalancers:
    """The load balancers of one cluster. Safe to share between threads."""

    def __init__(
        self, client: OpenStackClient, cluster_id: str, options: LoadBalancerOptions, cache: Cache | None = None
    ) -> None:
        self._client = client
        self._builder = OctaviaBuilder(cluster_id, options)
        groups = NodeGroups(client, self._networks, managed=options.manage_security_groups)
        self._reads = Reads(client, cluster_id, groups.read)
        self._topology: Entries[Topology] = Entries(cache or Cache(), _TOPOLOGY_SECONDS)
        floating_ips = FloatingIps(client, self._networks)
        self._changes = Changes(client, self._reads, floating_ips, groups, self._networks, cluster_id, options.provider)

    @property
    def builder(self) -> OctaviaBuilder:
        """What Services and nodes become; pure."""
        return self._builder

    def facts(self, services: Sequence[Object], *_: object) -> Fact[Topology]:
        """The networks of the project, if there are Services at all: read once in five minutes."""
        return Fact.read(self._networks) if services else Fact()

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        """See `LoadBalancers.read`."""
        return [observed(known) for known in self._reads.read(service_uids, ids)]

    def health(self, id: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each member passes its health check, where it is checked: one call."""
        tree = self._client.get(OCTAVIA, f"lbaas/loadbalancers/{id}/status")["statuses"]["loadbalancer"]
        found: dict[tuple[str, str, int], bool] = {}
        for listener in tree.get("listeners") or ():
            for pool in listener.get("pools") or ():
                for member in pool.get("members") or ():
                    if member["operating_status"] in ("ONLINE", "ERROR"):
                        key = (pool["name"], member["address"], member["protocol_port"])
                        found[key] = member["operating_status"] == "ONLINE"
        return found

    def perform(
        self, load_balancer: ObservedLoadBalancer | None, operations: Sequence[Operation]
    ) -> list[OperationResult]:
        """See `LoadBalancers.perform`: one change is sent, the others wait for it."""
        failures = Failures()
        results: list[OperationResult] = []
        waits = _reason_to_wait(load_balancer)
        covered: list[Operation] = []
        for operation in operations:
            if operation in covered:
                results.append(OperationResult(operation))
                continue
            if not failures.permit(operation):
                continue
            result, more = self._one(load_balancer, operation, operations, waits)
            if isinstance(result.error, Postponed) and (more.busy or not more.unfinished):
                waits = waits or result.error
            elif more.busy and load_balancer is not None:
                waits = Postponed(f"Octavia is changing load balancer {load_balancer.id}")
            covered += more.covered
            failures.record(operation, result.error)
            results.append(result)
        return results

    def _one(
        self,
        lb: ObservedLoadBalancer | None,
        operation: Operation,
        operations: Sequence[Operation],
        waits: Postponed | None,
    ) -> tuple[OperationResult, Sent]:
        nothing = Sent(busy=False)
        try:
            if isinstance(operation, CreateLoadBalancer):
                return OperationResult(operation, created=self._changes.create(operation)), nothing
            if waits is not None:
                raise waits.with_traceback(None)
            if (
                lb is not None
                and lb.state is LoadBalancerState.FAILED
                and not isinstance(operation, DeleteLoadBalancer)
            ):
                raise Conflict(f"load balancer {lb.id} cannot be changed: {lb.state_reason}")
            sent = self._changes.perform(operation, operations)
        except CloudError as error:
            if isinstance(error, Conflict) and "immutable" in str(error):
                if lb is not None and "Load Balancer" not in str(error):
                    # A pool: it is being changed too, or it is in ERROR since its last read.
                    self._reads.forget(lb.id)
                return OperationResult(operation, Postponed(f"Octavia accepts no change now: {error}")), nothing
            if lb is not None and not isinstance(error, Postponed | InvalidConfiguration):
                # Its answer may be lost, or somebody else has changed it.
                self._reads.forget(lb.id)
            return OperationResult(operation, error), nothing
        if sent.unfinished:
            return OperationResult(operation, Postponed(sent.unfinished)), sent
        return OperationResult(operation, sent.left_out, settled=not sent.busy), sent

    def _networks(self, max_age: float | None = None) -> Topology:
        return self._topology.fetch("", self._reads.topology, max_age)


def _reason_to_wait(lb: ObservedLoadBalancer | None) -> Postponed | None:
    if lb is None or lb.settled or lb.state is LoadBalancerState.DELETING:
        return None
    return Postponed(f"Octavia is still changing load balancer {lb.id}")
