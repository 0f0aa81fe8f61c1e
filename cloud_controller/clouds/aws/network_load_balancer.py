"""Network load balancers: one function for each operation, each safe to repeat after an interruption at any point.

`network_reads` reads them, `network_creation` creates and `network_changes` changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, NotFound
from cloud_controller.clouds.aws.attributes import DELETION_PROTECTION
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.listeners import Listeners
from cloud_controller.clouds.aws.memory import Known, KnownGroup, KnownListener, Memory, View, name_in
from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG, load_balancer_name
from cloud_controller.clouds.aws.network_changes import NetworkChanges
from cloud_controller.clouds.aws.network_creation import NetworkCreation
from cloud_controller.clouds.aws.network_model import name_of, observed
from cloud_controller.clouds.aws.network_reads import NetworkReads
from cloud_controller.clouds.aws.node_rules import NodeRules
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.tags import tag_list
from cloud_controller.clouds.aws.target_groups import TargetGroups
from cloud_controller.clouds.aws.upstream import model_name, not_adopted
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.clouds.common.refused_members import require_none
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import (
    LoadBalancerModel,
    LoadBalancerState,
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
    PutListener,
    PutPool,
    RemoveMembers,
    UpdateLoadBalancer,
)


class NetworkLoadBalancers:
    """One cluster's network load balancers in its VPC. Safe to share between threads, but change each load balancer
    in only one thread at a time."""

    def __init__(
        self,
        api: Api,
        config: Config,
        vpc_state: VpcState,
        security_groups: SecurityGroups,
        cache: Cache,
        concurrently: ConcurrentCalls,
    ) -> None:
        self._api = api
        self._config = config
        self._vpc_state = vpc_state
        self._security_groups = security_groups
        self._concurrently = concurrently
        self._groups = TargetGroups(api, vpc_state)
        self._listeners = Listeners(api)
        self.memory = Memory(cache)
        self._nodes = NodeRules(api, config, vpc_state)
        self._reads = NetworkReads(api, config, self.memory, self._groups, self._listeners, concurrently)
        self._creation = NetworkCreation(
            api, vpc_state, security_groups, self.memory, self._reads, self._groups, self._listeners, concurrently
        )
        self._changes = NetworkChanges(
            api, vpc_state, security_groups, self._nodes, self.memory, self._listeners, concurrently
        )

        self.functions: Mapping[type, Callable[[Any], None]] = {
            AdoptLoadBalancer: self._adopt,
            UpdateLoadBalancer: self._update,
            DeleteLoadBalancer: self._delete,
            PutPool: self._put_pool,
            AddMembers: self._add_members,
            RemoveMembers: self._remove_members,
            DeletePool: self._delete_pool,
            PutListener: self._put_listener,
            DeleteListener: self._delete_listener,
        }
        """The function for each operation on an existing load balancer."""

    # -------------------------------------------------------------------------------------------------------- reads

    def read(self) -> tuple[list[ObservedLoadBalancer], dict[str, Mapping[str, str]]]:
        """All load balancers; and the tags of target groups whose load balancer is not among them, by its ID."""
        listed = self._reads.all(self._vpc_state.facts().vpc_id)
        views = (*listed.load_balancers.values(), *listed.refused.values())
        found = [lb for view in views if (lb := self._observed(view)) is not None]
        return found, self._left_behind(listed.target_groups, listed.load_balancers)

    def read_some(self, ids: Collection[str]) -> list[ObservedLoadBalancer]:
        """Those of these that exist."""
        views = self._reads.some(ids, self._vpc_state.facts().vpc_id)
        return [lb for view in views.values() if (lb := self._observed(view)) is not None]

    def target_groups_left_behind(self, ids: Collection[str]) -> dict[str, Mapping[str, str]]:
        """The tags of the cluster's target groups whose load balancer is not in `ids`, by its ID."""
        return self._left_behind(self._reads.target_groups(self._vpc_state.facts().vpc_id), ids)

    def health(self, lb_id: str) -> dict[tuple[str, str, int], bool]:
        """Whether each member passes its health check, where AWS knows."""
        groups = self._known(lb_id).groups
        found = self._concurrently([partial(self._groups.health, group.arn) for group in groups.values()])
        return {
            (name, member.address, member.port): fit
            for name, members in zip(groups, found, strict=True)
            for member, fit in members.items()
            if fit is not None
        }

    # ---------------------------------------------------------------------------------------- the whole load balancer

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it with all its parts, some of which may already exist."""
        model = operation.model
        name = load_balancer_name(model, operation.client_token)
        with self.memory.cache.changing(name):
            view, known, attached = self._creation.load_balancer(name, model)
            self.memory.put(name, known)
        return observed(view, known, dict(model.tags), self._security_groups.attributes(name, attached))

    def _adopt(self, operation: AdoptLoadBalancer) -> None:
        """Add the owner's tags to it and its parts; see `AdoptLoadBalancer`."""
        lb_id = operation.id
        view = self._reads.some([lb_id], self._vpc_state.facts().vpc_id).get(lb_id)
        known = self._known(lb_id)
        if view is None or Owner.of_tags(self._reads.tags([known.arn]).get(known.arn, {})) is not None:
            raise Conflict(f"load balancer {lb_id} was deleted or already has an owner")
        with self.memory.cache.changing(lb_id):
            self.memory.views.forget(lb_id)
            self._security_groups.adopt(lb_id, view.get("SecurityGroups") or (), operation.tags)
            self._changes.adopt(lb_id, known, operation.tags)

    def _update(self, operation: UpdateLoadBalancer) -> None:
        """Set these attributes and tags, with the calls that the differences need; other tags stay."""
        lb_id, model = operation.id, operation.model
        known, view = self._known(lb_id), self.memory.views.get(lb_id)
        view = view or self._reads.some([lb_id], self._vpc_state.facts().vpc_id).get(lb_id)
        before = self._observed(view) if view is not None else None
        if view is None or before is None:
            raise NotFound(f"this cluster has no network load balancer {lb_id}")
        # Its tags may have changed since it was read.
        self._reads.require_ownership(lb_id, known.arn, model.tags)
        with self.memory.cache.changing(lb_id):
            self.memory.views.forget(lb_id)
            self.memory.put(lb_id, self._changes.load_balancer(view, known, before.model, model))

    def _delete(self, operation: DeleteLoadBalancer) -> None:
        """Delete it and its parts as far as possible now; the rest remains as a partial load balancer.

        Raises Conflict if it now belongs to another Service or cluster.
        """
        lb_id = operation.id
        groups, balancers = self.memory.groups(lb_id), self.memory.named(lb_id)
        owners = {arn: Owner.of_tags(self.memory.tags.get(arn) or {}) for arn in (*balancers, *groups.values())}
        # Their tags may have changed since they were read.
        tags = self._reads.tags([*owners])
        owned = {
            arn
            for arn, owner in owners.items()
            if owner is not None and owner.cluster_id == self._config.cluster_id and owner.owns(tags.get(arn, {}))
        }
        self.memory.tags.forget(*({*groups.values(), *balancers} - owned))
        if tags.keys() & {*balancers} - owned:
            raise Conflict(f"load balancer {lb_id} no longer has the tags of its Service")
        with self.memory.cache.changing(lb_id):
            for arn in owned & {*balancers}:
                if operation.replaced:
                    self._take_protection_off(lb_id, arn)
                self._api.call("elbv2", "DeleteLoadBalancer", LoadBalancerArn=arn)
                self.memory.tags.forget(arn)
            self._nodes.close(lb_id)
            # Security groups stay in use for minutes after their load balancer is deleted. Until they are deleted too,
            # the target groups stay, so that a resource with the Service's tags exists.
            if self._security_groups.delete(lb_id, [name_in(arn) for arn in balancers]):
                self._delete_groups([arn for arn in groups.values() if arn in owned])
        self.memory.forget(lb_id)

    def _take_protection_off(self, lb_id: str, arn: str) -> None:
        known = self.memory.get(lb_id)
        if known is not None and known.attributes.get(DELETION_PROTECTION) == "true":
            off = tag_list({DELETION_PROTECTION: "false"})
            with suppress(NotFound):  # Deleting what is gone already succeeds.
                self._api.call("elbv2", "ModifyLoadBalancerAttributes", LoadBalancerArn=arn, Attributes=off)

    # -------------------------------------------------------------------------------------------- pools and members

    def _put_pool(self, operation: PutPool) -> None:
        """Create the target group with its targets, or change its settings."""
        lb_id, pool = operation.id, operation.pool
        known = self._known(lb_id)
        group, refused = known.groups.get(pool.name), dict[Member, CloudError]()
        with self.memory.cache.changing(lb_id):
            self._open_nodes(lb_id, pool if group is None else replace(pool, members=group.pool.members))
            if group is not None and not operation.new:
                self._groups.change(group.arn, pool, group.pool)
                attributes = {**group.pool.attributes, **pool.attributes}
                changed = replace(group.pool, health_check=pool.health_check, attributes=attributes)
                group = replace(group, pool=changed)
            else:
                made = self._creation.group(lb_id, pool, self.memory.tags.get(known.arn) or {})
                group, refused = self._creation.fill(made, pool)
            self.memory.put(lb_id, known.with_group(pool.name, group))
        require_none(refused)

    def _add_members(self, operation: AddMembers) -> None:
        """Register the targets that AWS accepts: a refused one must not block the following operations."""
        known, group = self._group(operation.id, operation.pool)
        with self.memory.cache.changing(operation.id):
            self._open_nodes(operation.id, replace(group.pool, members=operation.members))
            calls = self._groups.exchange(group.arn, operation.members)
            refused = {member: error for each in self._concurrently(calls) for member, error in each.items()}
            members = {member.key: member for member in group.pool.members}
            members |= {member.key: member for member in operation.members if member not in refused}
            self._put_members(operation.id, known, group, members.values())
        require_none(refused)

    def _remove_members(self, operation: RemoveMembers) -> None:
        """Deregister the targets; their connections drain."""
        known, group = self._group(operation.id, operation.pool)
        with self.memory.cache.changing(operation.id):
            self._concurrently(self._groups.exchange(group.arn, (), operation.members))
            gone = {member.key for member in operation.members}
            rest = [member for member in group.pool.members if member.key not in gone]
            self._put_members(operation.id, known, group, rest)

    def _delete_pool(self, operation: DeletePool) -> None:
        """Delete the target group. Raises Conflict while a listener forwards to it."""
        known = self._known(operation.id)
        group = known.groups.get(operation.name)
        if group is None:
            return
        with self.memory.cache.changing(operation.id):
            if not self._groups.delete(group.arn):
                raise Conflict(f"target group {operation.name} of {operation.id} is still in use")
            self.memory.tags.forget(group.arn)
            self.memory.put(operation.id, known.with_group(operation.name, None))

    # ---------------------------------------------------------------------------------------------------- listeners

    def _put_listener(self, operation: PutListener) -> None:
        """Create the listener, or change the one on its port, even if its protocol differs."""
        listener = operation.listener
        known, group = self._group(operation.id, listener.pool)
        present = known.listeners.get(listener.port)
        with self.memory.cache.changing(operation.id):
            if present is not None:
                arn = present.arn
                self._listeners.change(arn, listener, group.arn, present.listener)
            else:
                tags = self.memory.tags.get(known.arn) or {}
                arn = self._listeners.create(known.arn, listener, group.arn, tags)
            changed = known.with_listener(listener.port, KnownListener(arn, listener))
            self._changes.unmark(known, changed)
            self.memory.put(operation.id, changed)

    def _delete_listener(self, operation: DeleteListener) -> None:
        """Delete the listener, unless its port has another protocol now."""
        known = self._known(operation.id)
        present = known.listeners.get(operation.port)
        if present is None or present.listener.protocol != operation.protocol:
            return
        with self.memory.cache.changing(operation.id):
            self._listeners.delete(present.arn)
            self.memory.put(operation.id, known.with_listener(operation.port, None))

    # ------------------------------------------------------------------------------------------------------ helpers

    def _observed(self, view: View) -> ObservedLoadBalancer | None:
        lb_id = view["LoadBalancerName"]
        known, tags = self.memory.get(lb_id), self.memory.tags.get(view["LoadBalancerArn"])
        if tags is None:
            return None  # It went while it was read.
        adoptable = self._reads.adoptable(view, self._vpc_state.facts().vpc_id)
        if adoptable is not None:
            if adoptable.refusal is not None or known is None:
                return not_adopted(lb_id, adoptable)
        elif known is None:
            # Another thread is creating it and knows more.
            model = LoadBalancerModel(name_of(tags) or lb_id, tags=tags)
            return ObservedLoadBalancer(lb_id, LoadBalancerState.PENDING, model, settled=False)
        attached = view.get("SecurityGroups") or ()
        found = observed(view, known, tags, self._security_groups.attributes(lb_id, attached))
        if adoptable is not None:
            name = model_name(lb_id, tags, self._config.cluster_id)
            found = replace(found, model=replace(found.model, name=name), adoptable=adoptable)
        if not attached and not self._security_groups.has_front(lb_id):
            # Upstream created it without security groups.
            attributes = {**found.model.attributes, **self._nodes.attributes(lb_id, found.model)}
            found = replace(found, model=replace(found.model, attributes=attributes))
        return found

    def _left_behind(self, groups: Collection[str], ids: Collection[str]) -> dict[str, Mapping[str, str]]:
        left: dict[str, Mapping[str, str]] = {}
        for arn in groups:
            tags = self.memory.tags.get(arn) or {}
            of = tags.get(LOAD_BALANCER_TAG)
            if of is not None and of not in ids:
                left.setdefault(of, tags)
        return left

    def _open_nodes(self, lb_id: str, pool: Pool) -> None:
        """Admit clients to the pool by rules of the nodes, if the load balancer has no security groups."""
        if not self._nodes.serves(lb_id):
            return
        view = self.memory.views.get(lb_id) or self._reads.some([lb_id], self._vpc_state.facts().vpc_id).get(lb_id)
        zones = (view or {}).get("AvailabilityZones") or ()
        self._nodes.open(lb_id, pool, tuple(str(zone["SubnetId"]) for zone in zones))

    def _known(self, lb_id: str) -> Known:
        """Raises NotFound if it does not exist."""
        known = self.memory.get(lb_id)
        if known is None:
            self._reads.some([lb_id], self._vpc_state.facts().vpc_id)
            known = self.memory.get(lb_id)
        if known is None:
            raise NotFound(f"this cluster has no network load balancer {lb_id}")
        return known

    def _group(self, lb_id: str, pool: str) -> tuple[Known, KnownGroup]:
        known = self._known(lb_id)
        if pool not in known.groups:
            raise NotFound(f"network load balancer {lb_id} has no pool {pool}")
        return known, known.groups[pool]

    def _put_members(self, lb_id: str, known: Known, group: KnownGroup, members: Collection[Member]) -> None:
        pool = replace(group.pool, members=tuple(members))
        self.memory.put(lb_id, known.with_group(pool.name, replace(group, pool=pool)))

    def _delete_groups(self, arns: Collection[str]) -> None:
        gone = self._concurrently([partial(self._groups.delete, arn) for arn in arns])
        self.memory.tags.forget(*(arn for arn, deleted in zip(arns, gone, strict=True) if deleted))
