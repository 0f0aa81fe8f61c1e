"""The operations on Octavia's load balancers: each sends at most one change that makes Octavia work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud_errors import CloudError, Conflict, InvalidConfiguration, NotFound, Postponed
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia import bodies, wire
from cloud_controller.clouds.openstack.octavia.floating_ips import FloatingIps
from cloud_controller.clouds.openstack.octavia.reads import OCTAVIA, Reads
from cloud_controller.clouds.openstack.octavia.topology import Topology
from cloud_controller.clouds.openstack.octavia.wire import Known, View
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    LoadBalancerModel,
    ObservedLoadBalancer,
    Owner,
    Pool,
)
from cloud_controller.load_balancers.operations import (
    AddMembers,
    AdoptLoadBalancer,
    CreateLoadBalancer,
    DeleteListener,
    DeleteLoadBalancer,
    DeletePool,
    Operation,
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)

_SUBNET = "annotation loadbalancer.openstack.org/subnet-id, or [LoadBalancer] subnet-id of the cloud config"


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an operation: whether Octavia works on it, what of it must still be sent, and which other
    operations the same call carried out."""

    busy: bool = True
    unfinished: str = ""
    covered: tuple[Operation, ...] = ()


class Changes:
    """The changes of one cluster's load balancers."""

    def __init__(
        self,
        client: OpenStackClient,
        reads: Reads,
        floating_ips: FloatingIps,
        topology: Callable[[], Topology],
        cluster_id: str,
    ) -> None:
        self._client = client
        self._reads = reads
        self._floating_ips = floating_ips
        self._topology = topology
        self._cluster_id = cluster_id

    # ------------------------------------------------------------------------------------------------------- the whole

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it with all its parts in one call, then its floating IP. One with this token is returned as it is."""
        model, token = operation.model, operation.client_token
        owner = Owner.of_tags(model.tags)
        for known in self._reads.of_token(token):
            if owner is None or not owner.owns(wire.tags_of(known.view)):
                raise Conflict(
                    f"load balancer {known.view['id']} has the token of this creation, not the tags of {owner}"
                )
            return wire.observed(known)
        members = [member for pool in model.pools for member in pool.members]
        body = bodies.load_balancer_body(model, token, self._subnets(model.pools), self._vip(model, members))
        view = self._client.post(OCTAVIA, "lbaas/loadbalancers", {"loadbalancer": body})["loadbalancer"]
        known = _of_created(view)
        self._reads.made(known, token)
        try:
            self._floating_ips.put(known, model)
        except CloudError:
            # It exists, so it must be returned: what it lacks is the next plan's first change, which raises this again.
            known.floating_ip = None
            self._reads.forget(view["id"])
        return wire.observed(known)

    def perform(self, operation: Operation, operations: Sequence[Operation]) -> Sent:
        """Send one change; `operations`: all of the plan, of which the call may carry out more."""
        match operation:
            case UpdateLoadBalancer():
                return self._update(operation)
            case PutPool():
                return self._put_pool(operation)
            case AddMembers():
                return self._add_members(operation, operations)
            case RemoveMembers():
                return self._set_members(operation.id, operation.pool, removed=operation.members)
            case PutListener():
                return self._put_listener(operation)
            case DeleteListener():
                return self._delete_listener(operation)
            case DeletePool():
                return self._delete_pool(operation)
            case DeleteLoadBalancer():
                return self._delete(operation)
            case AdoptLoadBalancer():
                raise CloudError(f"load balancer {operation.id} cannot be adopted: that is not supported on OpenStack")
            case _:
                raise TypeError(f"{type(operation).__name__} is no change of a load balancer")

    def _update(self, operation: UpdateLoadBalancer) -> Sent:
        known, model = self._reads.known(operation.id), operation.model
        self._require_ours(known)
        before = wire.tags_of(known.view)
        kept = {key: value for key, value in before.items() if key == wire.TOKEN_TAG}
        address = known.floating_ip
        if model.attributes:
            self._floating_ips.put(known, model)
        else:
            kept |= {key: value for key, value in before.items() if key in wire.ATTRIBUTE_TAGS.values()}
        tags = wire.tag_list({**model.tags, **kept, **wire.internal_tags(model, "")})
        if model.name == known.view["name"] and sorted(known.view["tags"]) == sorted(tags):
            # The plan knows the new address only from the next read.
            moved = f"load balancer {operation.id} has another address now" if known.floating_ip != address else ""
            return Sent(busy=False, unfinished=moved)
        self._put("loadbalancers", known, known.view, {"name": model.name, "tags": tags})
        return Sent(unfinished=f"Octavia is changing load balancer {operation.id}")

    def _delete(self, operation: DeleteLoadBalancer) -> Sent:
        try:
            known = self._reads.known(operation.id)
            self._require_ours(known)
            if known.view["provisioning_status"] == "PENDING_DELETE":
                return Sent()
            if known.view["provisioning_status"].startswith("PENDING"):
                raise Postponed(f"Octavia is still changing load balancer {operation.id}")
            self._floating_ips.release(known)
            self._floating_ips.delete_leftovers(known)
            self._client.delete(OCTAVIA, f"lbaas/loadbalancers/{operation.id}", cascade="true")
        except NotFound:
            self._reads.gone(operation.id)
            return Sent(busy=False)
        self._reads.gone(operation.id)
        return Sent()

    # --------------------------------------------------------------------------------------------- pools and members

    def _put_pool(self, operation: PutPool) -> Sent:
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
            self._put("pools", known, present, changed)
        monitor_waits = self._put_monitor(known, present, pool, send=not changed)
        if changed or monitor_waits.busy:
            unfinished = f"pool {pool.name}: the health monitor follows" if changed and monitor_waits.unfinished else ""
            return Sent(unfinished=unfinished or ("" if changed else monitor_waits.unfinished))
        return Sent(busy=False)

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
                self._put("healthmonitors", known, monitor, changed)
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

    def _add_members(self, operation: AddMembers, operations: Sequence[Operation]) -> Sent:
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
        sent = self._set_members(operation.id, operation.pool, operation.members, removed)
        return Sent(sent.busy, covered=(with_them,) if with_them else ())

    def _set_members(self, id: str, name: str, added: Iterable[Member] = (), removed: Iterable[Member] = ()) -> Sent:
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

    def _send_members(self, known: Known, present: View, pool: Pool, members: Sequence[Member]) -> None:
        """Replace the pool's members by these: one call, whatever their number."""
        views = known.members.get(present["id"], [])
        subnets = {each["address"]: each["subnet_id"] for each in views}
        subnets = self._subnets([Pool(pool.name, pool.health_check, tuple(members), pool.attributes)], subnets)
        bodies = [bodies.member_body(each, pool, subnets) for each in members]
        self._client.put(OCTAVIA, f"lbaas/pools/{present['id']}/members", {"members": bodies})
        known.members[present["id"]] = [{"monitor_port": None, **body} for body in bodies]
        self._reads.working(known.view["id"])

    def _delete_pool(self, operation: DeletePool) -> Sent:
        known = self._reads.known(operation.id)
        present = known.pool(operation.name)
        return self._remove("pools", known, known.pools, present)

    # ----------------------------------------------------------------------------------------------------- listeners

    def _put_listener(self, operation: PutListener) -> Sent:
        known, listener = self._reads.known(operation.id), operation.listener
        pool = known.pool(listener.pool)
        if pool is None:
            raise NotFound(f"load balancer {operation.id} has no pool {listener.pool}")
        present = known.listener(*listener.key)
        if present is not None and CLUSTER_TAG not in wire.tags_of(present):
            raise Conflict(
                f"load balancer {operation.id} has a listener on {listener} that the controller did not make"
            )
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
        self._put("listeners", known, present, changed)
        return Sent()

    def _delete_listener(self, operation: DeleteListener) -> Sent:
        known = self._reads.known(operation.id)
        return self._remove("listeners", known, known.listeners, known.listener(operation.protocol, operation.port))

    # ------------------------------------------------------------------------------------------------------- helpers

    def _put(self, kind: str, known: Known, present: View, changed: View) -> None:
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

    def _require_ours(self, known: Known) -> None:
        owner = Owner.of_tags(wire.tags_of(known.view))
        if owner is None or owner.cluster_id != self._cluster_id:
            raise Conflict(f"load balancer {known.view['id']} does not have the tags of cluster {self._cluster_id}")

    def _subnets(self, pools: Iterable[Pool], known: dict[str, str] | None = None) -> dict[str, str]:
        """The subnet of each member by its address, where the pool does not say it for all."""
        found = {**(known or {})}
        for pool in pools:
            if not pool.attributes.get("member_subnet"):
                for member in pool.members:
                    if member.address not in found:
                        found[member.address] = self._topology().subnet_of(member.address).id
        return found

    def _vip(self, model: LoadBalancerModel, members: Sequence[Member]) -> View:
        """Where the load balancer's own address is: as asked, otherwise in the subnet of a node."""
        names = {
            "vip_port_id": "vip_port",
            "vip_subnet_id": "vip_subnet",
            "vip_network_id": "vip_network",
            "vip_address": "vip_address",
        }
        found: View = {key: value for key, name in names.items() if (value := model.attributes.get(name))}
        if not found.keys() - {"vip_address"}:
            if not members:
                raise InvalidConfiguration(_SUBNET, "missing, and no node shows where the cluster is", "a subnet ID")
            found["vip_subnet_id"] = self._topology().subnet_of(members[0].address).id
        return found


def _members(known: Known, present: View) -> list[Member]:
    views: list[dict[str, Any]] = known.members.get(present["id"], [])
    return [Member(each["address"], each["protocol_port"], each["name"], each["weight"]) for each in views]


def _changed(present: View, wanted: View) -> View:
    """The fields that differ."""
    return {key: value for key, value in wanted.items() if _plain(present.get(key)) != _plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(value)
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if each is not None}
    return value


def _of_created(view: View) -> Known:
    """What the answer to a creation says: it has all parts, as their own reads would show them."""
    known = Known(view)
    for listener in view.get("listeners") or ():
        known.listeners[listener["id"]] = listener
    for pool in view.get("pools") or ():
        known.pools[pool["id"]] = pool
        known.members[pool["id"]] = list(pool.get("members") or ())
        if monitor := pool.get("healthmonitor"):
            known.monitors[monitor["id"]], pool["healthmonitor_id"] = monitor, monitor["id"]
    return known
