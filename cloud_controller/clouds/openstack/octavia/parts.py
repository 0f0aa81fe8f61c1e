"""Changes of listeners, pools, members and health monitors: each sends at most one call, and says what remains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud_errors import Conflict, NotFound
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia import bodies, wire
from cloud_controller.clouds.openstack.octavia.reads import Reads
from cloud_controller.clouds.openstack.octavia.topology import Topology
from cloud_controller.clouds.openstack.octavia.wire import OCTAVIA, Known, View
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import CLUSTER_TAG, Owner, Pool
from cloud_controller.load_balancers.operations import (
    AddMembers,
    DeleteListener,
    DeletePool,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an operation: whether Octavia works on it, what of it must still be sent, and which other
    operations the same call carried out."""

    busy: bool = True
    unfinished: str = ""
    covered: tuple[Operation, ...] = ()


class PartChanges:
    """The changes of the parts of one cluster's load balancers."""

    def __init__(self, client: OpenStackClient, reads: Reads, topology: Callable[[], Topology]) -> None:
        self._client = client
        self._reads = reads
        self._topology = topology

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
        changed = _changed(present, bodies.pool_body(pool))
        if changed:
            self.put("pools", known, present, changed)
        monitor_waits = self._put_monitor(known, present, pool, send=not changed)
        if changed or monitor_waits.busy:
            unfinished = f"pool {pool.name}: the health monitor follows" if changed and monitor_waits.unfinished else ""
            return Sent(unfinished=unfinished or ("" if changed else monitor_waits.unfinished))
        return Sent(busy=False)

    def add_members(self, operation: AddMembers, operations: Sequence[Operation]) -> Sent:
        """One call, also for the members of the same pool that are removed without being waited for."""
        with_them = next(
            (
                each
                for each in operations
                if isinstance(each, RemoveMembers) and each.pool == operation.pool and not each.hand_over
            ),
            None,
        )
        removed = with_them.members if with_them else ()
        sent = self.set_members(operation.id, operation.pool, operation.members, removed)
        return Sent(sent.busy, covered=(with_them,) if with_them else ())

    def set_members(self, id: str, name: str, added: Iterable[Member] = (), removed: Iterable[Member] = ()) -> Sent:
        """Add and remove members of a pool by one call."""
        known = self._reads.known(id)
        present = known.pool(name)
        if present is None:
            raise NotFound(f"load balancer {id} has no pool {name}")
        members = {each.key: each for each in _members(known, present)}
        wanted = {key: each for key, each in members.items() if key not in {each.key for each in removed}}
        wanted |= {each.key: each for each in added}
        if wanted == members:
            return Sent(busy=False)
        pool = next(each for each in wire.observed(known).model.pools if each.name == name)
        self._send_members(known, present, pool, [*wanted.values()])
        return Sent()

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
        changed = _changed(present, {**bodies.listener_body(listener), "default_pool_id": pool["id"]})
        if not changed:
            return Sent(busy=False)
        self.put("listeners", known, present, changed)
        return Sent()

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
        if changed := _changed(monitor, bodies.monitor_body(pool)):
            if send:
                self.put("healthmonitors", known, monitor, changed)
            return Sent(unfinished="" if send and self._ports_agree(known, present, pool) else later)
        if not self._ports_agree(known, present, pool):
            if send:
                self._send_members(known, present, pool, _members(known, present))
            return Sent(unfinished="" if send else later)
        return Sent(busy=False)

    def _ports_agree(self, known: Known, present: View, pool: Pool) -> bool:
        """Whether each member is checked on the port that the pool's check has."""
        members = known.members.get(present["id"], [])
        return all(each.get("monitor_port") == pool.health_check.port for each in members)

    def _send_members(self, known: Known, present: View, pool: Pool, members: Sequence[Member]) -> None:
        """Replace the pool's members by these: one call, whatever their number."""
        views = known.members.get(present["id"], [])
        subnets = {each["address"]: each["subnet_id"] for each in views}
        subnets = self.subnets([Pool(pool.name, pool.health_check, tuple(members), pool.attributes)], subnets)
        views = [bodies.member_body(each, pool, subnets) for each in members]
        self._client.put(OCTAVIA, f"lbaas/pools/{present['id']}/members", {"members": views})
        known.members[present["id"]] = [{"monitor_port": None, **each} for each in views]
        self._reads.working(known.view["id"])

    def subnets(self, pools: Iterable[Pool], known: dict[str, str] | None = None) -> dict[str, str]:
        """The subnet of each member by its address, where the pool does not say it for all."""
        found = {**(known or {})}
        for pool in pools:
            if not pool.attributes.get("member_subnet"):
                for member in pool.members:
                    if member.address not in found:
                        found[member.address] = self._topology().subnet_of(member.address).id
        return found

    def put(self, kind: str, known: Known, present: View, changed: View) -> None:
        """Change fields of an object."""
        body = {kind[:-1]: changed}
        present.update(self._client.put(OCTAVIA, f"lbaas/{kind}/{present['id']}", body)[kind[:-1]])
        self._reads.working(known.view["id"])

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


def _members(known: Known, present: View) -> list[Member]:
    views: list[dict[str, Any]] = known.members.get(present["id"], [])
    # One that somebody has switched off is to be added again.
    on = [each for each in views if each.get("admin_state_up", True)]
    return [Member(each["address"], each["protocol_port"], each["name"], each["weight"]) for each in on]


def _changed(present: View, wanted: View) -> View:
    """The fields that differ."""
    return {key: value for key, value in wanted.items() if _plain(present.get(key)) != _plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(value)
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if each is not None}
    return value
