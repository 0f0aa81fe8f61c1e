"""Changes of listeners, pools and health monitors: each sends at most one call, and says what remains."""

from __future__ import annotations

from typing import Any

from cloud_controller.cloud_errors import Conflict, NotFound
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia import bodies, wire
from cloud_controller.clouds.openstack.octavia.failed_parts import FailedParts
from cloud_controller.clouds.openstack.octavia.faults import is_failed
from cloud_controller.clouds.openstack.octavia.members import MemberChanges
from cloud_controller.clouds.openstack.octavia.reads import Reads
from cloud_controller.clouds.openstack.octavia.sent import Sent
from cloud_controller.clouds.openstack.octavia.wire import OCTAVIA, Known, View
from cloud_controller.load_balancers.model import CLUSTER_TAG, Owner, Pool
from cloud_controller.load_balancers.operations import DeleteListener, DeletePool, PutListener, PutPool


class PartChanges:
    """The changes of the parts of one cluster's load balancers."""

    def __init__(self, client: OpenStackClient, reads: Reads, failed: FailedParts, members: MemberChanges) -> None:
        self._client = client
        self._reads = reads
        self._failed = failed
        self._members = members

    def put_pool(self, operation: PutPool) -> Sent:
        """Create the pool, or change it or its health monitor, by one call."""
        known, pool = self._reads.known(operation.id), operation.pool
        present = known.pool(pool.name)
        if present is None:
            body = {**bodies.new_pool_body(pool), "loadbalancer_id": operation.id}
            made = self._client.post(OCTAVIA, "lbaas/pools", {"pool": body})["pool"]
            known.pools[made["id"]] = made
            self._reads.working(operation.id)
            more = "members" if pool.members else "its health monitor" if bodies.has_monitor(pool) else ""
            return Sent(unfinished=f"pool {pool.name} still lacks {more}" if more else "")
        sent = self._put("pools", known, present, bodies.pool_body(pool), f"pool {pool.name}")
        if sent.unfinished:
            return sent
        monitor_waits = self._put_monitor(known, present, pool, send=not sent.busy)
        if sent.busy:
            return Sent(unfinished=f"pool {pool.name}: the health monitor follows" if monitor_waits.unfinished else "")
        return monitor_waits

    def delete_pool(self, operation: DeletePool) -> Sent:
        """Delete the pool, if it exists."""
        known = self._reads.known(operation.id)
        present = known.pool(operation.name)
        return self._remove("pools", known, known.pools, present)

    def put_listener(self, operation: PutListener) -> Sent:
        """Create or change the listener; one whose protocol changes is deleted first."""
        known, listener = self._reads.known(operation.id), operation.listener
        pool = known.pool(listener.pool)
        if pool is None:
            raise NotFound(f"load balancer {operation.id} has no pool {listener.pool}")
        present = known.listener(*listener.key)
        if present is not None and Owner.of_tags(wire.tags_of(present)) != Owner.of_tags(listener.tags):
            raise Conflict(f"load balancer {operation.id} has a listener on {listener} that is not the Service's")
        if present is not None and present["protocol"] != listener.attributes["protocol"]:
            # Octavia cannot change the protocol, and two listeners cannot have one port.
            self._remove("listeners", known, known.listeners, present)
            return Sent(unfinished=f"listener {listener} is made anew, because its protocol changes")
        if present is None:
            body = {
                **bodies.new_listener_body(listener),
                "loadbalancer_id": operation.id,
                "default_pool_id": pool["id"],
            }
            made = self._client.post(OCTAVIA, "lbaas/listeners", {"listener": body})["listener"]
            known.listeners[made["id"]] = made
            self._reads.working(operation.id)
            return Sent()
        wanted = {**bodies.listener_body(listener), "default_pool_id": pool["id"]}
        return self._put("listeners", known, present, wanted, f"listener {listener}")

    def delete_listener(self, operation: DeleteListener) -> Sent:
        """Delete the listener, if it exists."""
        known = self._reads.known(operation.id)
        present = known.listener(operation.protocol, operation.port)
        if present is not None and CLUSTER_TAG not in wire.tags_of(present):
            raise Conflict(f"load balancer {operation.id}: the controller did not make listener {present['id']}")
        return self._remove("listeners", known, known.listeners, present)

    def _put_monitor(self, known: Known, present: View, pool: Pool, *, send: bool) -> Sent:
        """Make the pool's health monitor what it should be, by one call; `send`: or only say what remains."""
        lb_id, check = known.view["id"], pool.health_check
        monitor = known.monitors.get(present.get("healthmonitor_id") or "")
        later = f"pool {pool.name} still lacks its health monitor"
        if monitor is not None and monitor["type"] != check.protocol:
            if send:
                self._client.delete(OCTAVIA, f"lbaas/healthmonitors/{monitor['id']}")
                present["healthmonitor_id"] = None
                self._reads.working(lb_id)
            return Sent(unfinished=later if bodies.has_monitor(pool) or not send else "")
        if not bodies.has_monitor(pool):
            return Sent(busy=False)
        if monitor is None:
            if send:
                body = {**bodies.new_monitor_body(pool), "pool_id": present["id"]}
                made = self._client.post(OCTAVIA, "lbaas/healthmonitors", {"healthmonitor": body})["healthmonitor"]
                known.monitors[made["id"]], present["healthmonitor_id"] = made, made["id"]
                self._reads.working(lb_id)
            return Sent(unfinished="" if send and self._ports_agree(known, present, pool) else later)
        wanted = bodies.monitor_body(pool)
        if not send and (is_failed(monitor) or fields_changed(monitor, wanted)):
            return Sent(unfinished=later)
        sent = self._put("healthmonitors", known, monitor, wanted, f"the health monitor of pool {pool.name}")
        if sent.busy:
            return Sent(unfinished=sent.unfinished or ("" if self._ports_agree(known, present, pool) else later))
        if not self._ports_agree(known, present, pool):
            if send:
                self._members.put_ports(known, present, pool)
            return Sent(unfinished="" if send else later)
        return Sent(busy=False)

    def _ports_agree(self, known: Known, present: View, pool: Pool) -> bool:
        """Whether each member is checked on the port that the pool's check has."""
        members = known.members.get(present["id"], [])
        return all(each.get("monitor_port") == pool.health_check.port for each in members)

    def put(self, kind: str, known: Known, present: View, changed: View) -> None:
        """Change fields of an object."""
        body = {kind[:-1]: changed}
        present.update(self._client.put(OCTAVIA, f"lbaas/{kind}/{present['id']}", body)[kind[:-1]])
        self._reads.working(known.view["id"])

    def _put(self, kind: str, known: Known, present: View, wanted: View, what: str) -> Sent:
        """Change the fields of an object that differ; of one that Octavia failed to change, send all again.

        Raises Conflict while it is too early for that.
        """
        if is_failed(present):
            again = self._failed.attempt(present["id"], what, at_once=bool(fields_changed(present, wanted)))
            self.put(kind, known, present, wanted)
            # Only a read shows whether it succeeds this time.
            self._reads.forget(known.view["id"])
            return Sent(unfinished=again)
        if changed := fields_changed(present, wanted):
            self.put(kind, known, present, changed)
        return Sent(busy=bool(changed))

    def _remove(self, kind: str, known: Known, parts: dict[str, View], present: View | None) -> Sent:
        if present is None:
            return Sent(busy=False)
        try:
            self._client.delete(OCTAVIA, f"lbaas/{kind}/{present['id']}")
        except NotFound:
            parts.pop(present["id"], None)
            return Sent(busy=False)
        parts.pop(present["id"], None)
        self._reads.working(known.view["id"])
        return Sent()


def fields_changed(present: View, wanted: View) -> View:
    """The fields that differ."""
    return {key: value for key, value in wanted.items() if _plain(present.get(key)) != _plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(value)
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if each is not None}
    return value
