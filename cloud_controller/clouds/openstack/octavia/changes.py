"""The operations on Octavia's load balancers: each sends at most one change that makes Octavia work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloud_controller.cloud_errors import CloudError, Conflict, InvalidConfiguration, NotFound, Postponed
from cloud_controller.clouds.openstack.client import OpenStackClient
from cloud_controller.clouds.openstack.octavia import bodies, wire
from cloud_controller.clouds.openstack.octavia.failed_parts import FailedParts
from cloud_controller.clouds.openstack.octavia.floating_ips import FloatingIps
from cloud_controller.clouds.openstack.octavia.members import MemberChanges
from cloud_controller.clouds.openstack.octavia.node_groups import NodeGroups
from cloud_controller.clouds.openstack.octavia.parts import PartChanges, fields_changed
from cloud_controller.clouds.openstack.octavia.reads import Reads
from cloud_controller.clouds.openstack.octavia.sent import Sent
from cloud_controller.clouds.openstack.octavia.topology import ReadTopology, subnets_of
from cloud_controller.clouds.openstack.octavia.wire import OCTAVIA, Known, View
from cloud_controller.load_balancers.model import (
    LoadBalancerModel,
    ObservedLoadBalancer,
    Owner,
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


class Changes:
    """The changes of one cluster's load balancers."""

    def __init__(
        self,
        client: OpenStackClient,
        reads: Reads,
        floating_ips: FloatingIps,
        groups: NodeGroups,
        topology: ReadTopology,
        cluster_id: str,
        provider: str,
    ) -> None:
        """`provider`: Octavia's of new load balancers; "": its default."""
        self._client = client
        self._reads = reads
        self._floating_ips = floating_ips
        self._groups = groups
        self._topology = topology
        failed = FailedParts()
        self._members = MemberChanges(client, reads, failed, topology)
        self._parts = PartChanges(client, reads, failed, self._members)
        self._cluster_id = cluster_id
        self._provider = provider

    # ------------------------------------------------------------------------------------------------------- the whole

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it with all its parts in one call, then its floating IP. One with this token is returned as it is."""
        model, token = operation.model, operation.client_token
        owner = Owner.of_tags(model.tags)
        is_new = self._reads.is_new(token)
        for known in [] if is_new else self._reads.of_token(token):
            if owner is None or not owner.owns(wire.tags_of(known.view)):
                raise Conflict(
                    f"load balancer {known.view['id']} has the token of this creation, not the tags of {owner}"
                )
            return wire.observed(known)
        first, subnets = self._members.without_odd(model)
        body = bodies.load_balancer_body(first, token, subnets, self._vip(model), self._provider)
        view = self._client.post(OCTAVIA, "lbaas/loadbalancers", {"loadbalancer": body})["loadbalancer"]
        known = _of_created(view)
        self._reads.made(known, token)
        look = not is_new or self._reads.may_be_left(wire.describe(model.tags))
        try:
            self._floating_ips.put(known, model, look=look)
            self._groups.put(known, model)
        except CloudError:
            # It exists, so it must be returned: what it lacks is the next plan's first change, which raises this again.
            known.floating_ip, known.group = None, None
            self._reads.forget(view["id"])
        return wire.observed(known)

    def perform(self, operation: Operation, operations: Sequence[Operation]) -> Sent:
        """Send one change; `operations`: all of the plan, of which the call may carry out more."""
        match operation:
            case UpdateLoadBalancer():
                return self._update(operation)
            case PutPool():
                return self._parts.put_pool(operation)
            case AddMembers():
                return self._members.add(operation, operations)
            case RemoveMembers():
                return self._members.remove(operation)
            case PutListener():
                return self._parts.put_listener(operation)
            case DeleteListener():
                return self._parts.delete_listener(operation)
            case DeletePool():
                return self._parts.delete_pool(operation)
            case DeleteLoadBalancer():
                return self._delete(operation)
            case AdoptLoadBalancer():
                raise CloudError(f"load balancer {operation.id} cannot be adopted: that is not supported on OpenStack")
            case _:
                raise TypeError(f"{type(operation).__name__} is no change of a load balancer")

    def _update(self, operation: UpdateLoadBalancer) -> Sent:
        known, model = self._reads.known(operation.id), operation.model
        self._require_ours(known)
        address = model.attributes.get("vip_address")
        if address and address != known.view.get("vip_address"):
            why = f"load balancer {operation.id} is internal and keeps its address; delete the Service to change it"
            raise InvalidConfiguration("spec.loadBalancerIP", why, str(known.view.get("vip_address")))
        before = wire.tags_of(known.view)
        kept = {key: value for key, value in before.items() if key == wire.TOKEN_TAG}
        floating_ip, access = known.floating_ip, Sent(busy=False)
        if model.attributes:
            self._floating_ips.put(known, model)
        else:
            kept |= {key: value for key, value in before.items() if key in wire.ATTRIBUTE_TAGS.values()}
        tags = wire.tag_list({**model.tags, **kept, **wire.internal_tags(model, "")})
        turned_on = wire.ATTRIBUTE_TAGS["node_group"] in wire.tags_of({"tags": tags}).keys() - before.keys()
        if model.attributes and not turned_on:
            # The tag is first, so that whoever deletes the load balancer knows of the group.
            access = self._groups.put(known, model)
        enabled = model.attributes.get("enabled", known.view.get("admin_state_up"))
        changed = fields_changed(known.view, {"name": model.name, "tags": tags, "admin_state_up": enabled})
        if not changed:
            # The plan knows the new address only from the next read.
            moved = f"load balancer {operation.id} has another address now" if known.floating_ip != floating_ip else ""
            return replace(access, unfinished=moved or access.unfinished)
        self._parts.put("loadbalancers", known, known.view, changed)
        return Sent(unfinished=f"Octavia is changing load balancer {operation.id}")

    def _delete(self, operation: DeleteLoadBalancer) -> Sent:
        try:
            known = self._reads.known(operation.id)
        except NotFound:
            return Sent(busy=False)
        self._require_ours(known)
        if foreign := wire.foreign_parts(known):
            # The deletion would take them along.
            raise Conflict(f"load balancer {operation.id} has parts of somebody else: {', '.join(foreign)}")
        if known.view["provisioning_status"] == "PENDING_DELETE":
            return Sent()
        if known.view["provisioning_status"].startswith("PENDING"):
            raise Postponed(f"Octavia is still changing load balancer {operation.id}")
        self._floating_ips.remove(known)
        if not self._reads.has_sibling(known):
            self._groups.remove(known)
        try:
            self._client.delete(OCTAVIA, f"lbaas/loadbalancers/{operation.id}", cascade="true")
        except NotFound:
            self._reads.gone(operation.id)
            return Sent(busy=False)
        self._reads.gone(operation.id)
        return Sent()

    def _require_ours(self, known: Known) -> None:
        owner = Owner.of_tags(wire.tags_of(known.view))
        if owner is None or owner.cluster_id != self._cluster_id:
            raise Conflict(f"load balancer {known.view['id']} does not have the tags of cluster {self._cluster_id}")

    def _vip(self, model: LoadBalancerModel) -> View:
        """Where the load balancer's own address is: as asked, otherwise in the subnet of a node."""
        names = {
            "vip_port_id": "vip_port",
            "vip_subnet_id": "vip_subnet",
            "vip_network_id": "vip_network",
            "vip_address": "vip_address",
        }
        found: View = {key: value for key, name in names.items() if (value := model.attributes.get(name))}
        if not found.keys() - {"vip_address"}:
            nodes = [member.address for pool in model.pools for member in pool.members]
            subnets, missing = subnets_of(nodes, self._topology)
            if not subnets:
                why = "missing, and there is no member yet (with Local: no ready pod) to take it from"
                raise next(iter(missing.values()), InvalidConfiguration(_SUBNET, why, "a subnet ID"))
            found["vip_subnet_id"] = next(iter(subnets.values()))
        return found


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
