"""The operations on NLBs, each with the calls that it needs. Each returns the jobs that nobody has waited for yet."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, NotFound, Postponed, Unavailable
from cloud_controller.clouds.alicloud.nlb.api import Place
from cloud_controller.clouds.alicloud.nlb.instance import Instances
from cloud_controller.clouds.alicloud.nlb.listeners import Listeners
from cloud_controller.clouds.alicloud.nlb.memory import Known, KnownGroup, Memory
from cloud_controller.clouds.alicloud.nlb.names import OWN_GROUP_TAG
from cloud_controller.clouds.alicloud.nlb.observed import observed
from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroups
from cloud_controller.clouds.alicloud.nlb.reads import NetworkReads
from cloud_controller.clouds.alicloud.nlb.server_groups import ServerGroups
from cloud_controller.clouds.alicloud.nlb.wire import View, load_balancer_params, tag_list, tags_of, token_of
from cloud_controller.clouds.alicloud.nlb.writes import Writes
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    LoadBalancerModel,
    LoadBalancerState,
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
from cloud_controller.load_balancers.sharing import LEFT_TAG

Jobs = dict[str, str]


class Changes:
    """The changes of one cluster's NLBs. Safe to share between threads, one for each load balancer."""

    def __init__(
        self,
        place: Place,
        memory: Memory,
        reads: NetworkReads,
        writes: Writes,
        groups: ServerGroups,
        listeners: Listeners,
        own_groups: OwnGroups,
    ) -> None:
        self._place = place
        self._memory = memory
        self._reads = reads
        self._writes = writes
        self._groups = groups
        self._listeners = listeners
        self._own_groups = own_groups
        self._instances = Instances(writes, own_groups)
        self.functions: Mapping[type, Callable[[Any], Jobs]] = {
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

    def failed(self, operation: Operation) -> None:
        """The jobs of an operation failed, or are not done: what it changed is read again."""
        if isinstance(operation, CreateLoadBalancer):
            return
        known = self._memory.known.get(operation.id)
        if known is not None:
            self._memory.servers.forget(*(group.id for group in known.groups.values()))
            self._memory.certificates.forget(*(listener.id for listener in known.listeners.values()))
        self._memory.known.forget(operation.id)

    # ---------------------------------------------------------------------------------------- the whole load balancer

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it with all its parts. What takes longer than a call may wait is left to the next plan, which finds
        the load balancer still being created."""
        model = operation.model
        view = self._made(model, operation.client_token)
        lb_id, waits = str(view["LoadBalancerId"]), False
        with self._memory.cache.changing(lb_id):
            known = Known(view)
            try:
                known = self._with_groups(known, model, operation.client_token)
                known = replace(known, view=self._when_active(view))
                waits = known.view.get("LoadBalancerStatus") != "Active"
                if not waits:
                    known = self._with_front(known, model, operation.client_token)
                self._memory.known.put(lb_id, known)
            except Postponed:
                waits = True
            except Conflict as error:
                # To the caller, Conflict says that the token is another's, and it would make a second load balancer.
                raise Unavailable(f"load balancer {lb_id} is not complete: {error}") from error
        own = self._own_groups.of(lb_id) if model.attributes["source_ranges"] and not waits else None
        found = observed(known, own)
        # Unless all is there, it is still being created: the next read tells what is lacking.
        return replace(found, state=LoadBalancerState.PENDING, settled=False) if waits else found

    def _made(self, model: LoadBalancerModel, client_token: str) -> View:
        """The load balancer of this token, which may exist. Raises Conflict if the token has another owner's."""
        owner = Owner.of_tags(model.tags)
        # The API remembers a token for longer than its load balancer exists: then nothing is left to be found again.
        for token in (token_of(client_token), str(uuid.uuid4())):
            params = {"ClientToken": token, **load_balancer_params(model, self._place.vpc_id)}
            lb_id = str(self._writes.send("CreateLoadBalancer", params)[0]["LoadbalancerId"])
            self._memory.made.put(lb_id, owner.uid if owner else "", anew=True)
            view = self._once_shown(lb_id)
            if view is None or view.get("LoadBalancerStatus") == "Deleting":
                self._memory.made.forget(lb_id)
                continue
            if owner is None or not owner.owns(tags_of(view)):
                self._memory.made.forget(lb_id)
                raise Conflict(f"load balancer {lb_id} of this token does not have the tags of {owner}")
            return view
        raise Unavailable(f"nlb CreateLoadBalancer: {lb_id} does not appear")

    def _once_shown(self, lb_id: str) -> View | None:
        found: list[View | None] = [None]

        def ask() -> bool:
            found[0] = self._reads.view(lb_id)
            return found[0] is not None

        self._writes.jobs.until(ask)
        return found[0]

    def _with_groups(self, known: Known, model: LoadBalancerModel, token: str) -> Known:
        """Create the server groups, all at once, and then add their servers."""
        jobs: Jobs = {}
        resource_group = model.attributes.get("resource_group_id")
        for pool in model.pools:
            # A repeated creation gets the same groups by their tokens.
            made = token_of(token, known.id, pool.name)
            group, more = self._groups.create(known.id, pool, model.tags, resource_group, made)
            known, jobs = known.with_group(pool.name, group), jobs | more
        self._writes.jobs.require(jobs)
        jobs = {}
        for pool in model.pools:
            made = token_of(token, known.id, pool.name, "servers")
            group, more = self._groups.add(known.groups[pool.name], pool.members, made)
            known, jobs = known.with_group(pool.name, group), jobs | more
        self._writes.jobs.require(jobs)
        return known

    def _when_active(self, view: View) -> View:
        """The load balancer once it is created, or as it is when patience ends."""
        found = [view]

        def ask() -> bool:
            found.append(self._reads.view(str(view["LoadBalancerId"])) or {})
            return found[-1].get("LoadBalancerStatus") != "Provisioning"

        if view.get("LoadBalancerStatus") == "Provisioning":
            self._writes.jobs.until(ask)
        return found[-1]

    def _with_front(self, known: Known, model: LoadBalancerModel, token: str) -> Known:
        """What CreateLoadBalancer cannot set, then the listeners: clients are limited before one can connect."""
        known, jobs = replace(known, view=self._instances.put(known.view, model)), dict[str, str]()
        for listener in model.listeners:
            group = known.groups[listener.pool]
            made, more = self._listeners.create(
                known.id, listener, group.id, model.tags, token_of(token, known.id, *map(str, listener.key))
            )
            known, jobs = known.with_listener(listener.key, made), jobs | more
        self._writes.jobs.require(jobs)
        return known

    def _adopt(self, operation: AdoptLoadBalancer) -> Jobs:
        raise CloudError(f"load balancer {operation.id} cannot be adopted: no other controller's NLBs are taken over")

    def _update(self, operation: UpdateLoadBalancer) -> Jobs:
        """Set its attributes and tags; with tags without an owner, release it and its parts."""
        lb_id, model = operation.id, operation.model
        known = self._reads.known(lb_id)
        expected = Owner.of_tags(model.tags) or Owner.of_tags(known.tags)
        view = self._owned(lb_id, expected)
        with self._memory.cache.changing(lb_id):
            before = tags_of(view)
            if Owner.of_tags(model.tags) is None:
                self._release(known, expected)
                view = view if not model.attributes else self._instances.put(view, model)
                self._writes.retag("loadbalancer", lb_id, before, model.tags)
            else:
                # The tags say whether there is a security group of its own, so they come first.
                self._writes.retag("loadbalancer", lb_id, _without_system(before), _without_system(model.tags))
                view = self._instances.put({**view, "Tags": tag_list(model.tags)}, model)
            self._memory.known.put(lb_id, replace(known, view={**view, "Tags": tag_list(model.tags)}))
        return {}

    def _owned(self, lb_id: str, owner: Owner | None) -> View:
        """The load balancer as it is now. Raises NotFound if it is gone, Conflict if it is not this owner's."""
        view = self._reads.view(lb_id)
        if view is None:
            self._memory.known.forget(lb_id)
            raise NotFound(f"load balancer {lb_id} no longer exists")
        if owner is None or owner.cluster_id != self._place.cluster_id or not owner.owns(tags_of(view)):
            self._memory.known.forget(lb_id)
            raise Conflict(f"load balancer {lb_id} does not have the tags of {owner}")
        return view

    def _release(self, known: Known, owner: Owner | None) -> None:
        """Take the owner's tags from the parts, before the load balancer itself loses them."""
        for kind, parts in (
            ("listener", {each.id: each.listener.tags for each in known.listeners.values()}),
            ("servergroup", {each.id: each.pool.tags for each in known.groups.values()}),
        ):
            for part, tags in parts.items():
                if owner is not None and owner.owns(tags):
                    self._memory.shown(part)
                    self._writes.retag(kind, part, tags, owner.released(tags))

    def _delete(self, operation: DeleteLoadBalancer) -> Jobs:
        """Delete it and its parts as far as possible now. What is left is found by its tags."""
        lb_id, known = operation.id, self._memory.known.get(operation.id)
        view = self._reads.view(lb_id)
        groups = self._groups_of(lb_id, known)
        with self._memory.cache.changing(lb_id):
            if view is not None:
                owner = Owner.of_tags(known.tags if known else tags_of(view))
                if owner is None or owner.cluster_id != self._place.cluster_id or not owner.owns(tags_of(view)):
                    raise Conflict(f"load balancer {lb_id} no longer has the tags of its Service")
                if view.get("LoadBalancerStatus") == "Deleting":
                    raise Postponed(f"load balancer {lb_id} is being deleted")
                if OWN_GROUP_TAG in tags_of(view):
                    # No listener may serve while nobody is refused.
                    jobs: Jobs = {}
                    for listener in known.listeners.values() if known else ():
                        jobs |= self._listeners.delete(listener.id)
                    self._writes.jobs.require(jobs)
                    self._instances.leave_own_group(view)
                self._instances.unprotect(view)
                self._memory.made.forget(lb_id)
                self._writes.jobs.require(self._writes.delete("DeleteLoadBalancer", {"LoadBalancerId": lb_id}))
            elif any(OWN_GROUP_TAG in tags for tags in groups.values()):
                self._own_groups.delete(lb_id)
            jobs = {}
            for group_id, tags in groups.items():
                try:
                    jobs |= self._groups.delete(group_id, tags)
                except Conflict as error:
                    raise Postponed(f"server group {group_id} of {lb_id} is still in use") from error
            self._memory.known.forget(lb_id)
        return jobs

    def _groups_of(self, lb_id: str, known: Known | None) -> dict[str, Mapping[str, str]]:
        """The tags of the server groups that were made for it in this cluster, by ID."""
        if known is not None:
            found = {group.id: group.pool.tags for group in known.groups.values()}
        else:
            found = {group_id: tags_of(view) for group_id, view in self._reads.groups_of(lb_id).items()}
        return {group_id: tags for group_id, tags in found.items() if tags.get(CLUSTER_TAG) == self._place.cluster_id}

    # --------------------------------------------------------------------------------------------- pools and members

    def _put_pool(self, operation: PutPool) -> Jobs:
        """Create the server group with its servers, or change its settings."""
        lb_id, pool = operation.id, operation.pool
        known = self._reads.known(lb_id)
        group = known.groups.get(pool.name)
        with self._memory.cache.changing(lb_id):
            if group is None:
                resource_group = known.view.get("ResourceGroupId")
                group, jobs = self._groups.create(lb_id, pool, _tags_for(pool.tags, known), resource_group)
                self._writes.jobs.require(jobs)
                group, jobs = self._groups.add(group, pool.members)
            else:
                group, jobs = self._groups.change(group, pool)
            self._memory.known.put(lb_id, known.with_group(pool.name, group))
        return jobs

    def _add_members(self, operation: AddMembers) -> Jobs:
        known, group = self._group(operation.id, operation.pool)
        with self._memory.cache.changing(operation.id):
            group, jobs = self._groups.add(group, operation.members)
            self._memory.known.put(operation.id, known.with_group(operation.pool, group))
        return jobs

    def _remove_members(self, operation: RemoveMembers) -> Jobs:
        known, group = self._group(operation.id, operation.pool)
        with self._memory.cache.changing(operation.id):
            group, jobs = self._groups.remove(group, operation.members)
            self._memory.known.put(operation.id, known.with_group(operation.pool, group))
        return jobs

    def _delete_pool(self, operation: DeletePool) -> Jobs:
        known = self._reads.known(operation.id)
        group = known.groups.get(operation.name)
        if group is None:
            return {}
        with self._memory.cache.changing(operation.id):
            jobs = self._groups.delete(group.id, group.pool.tags)
            self._memory.known.put(operation.id, known.with_group(operation.name, None))
        return jobs

    # ----------------------------------------------------------------------------------------------------- listeners

    def _put_listener(self, operation: PutListener) -> Jobs:
        lb_id, listener = operation.id, operation.listener
        known, group = self._group(lb_id, listener.pool)
        present = known.listeners.get(listener.key)
        with self._memory.cache.changing(lb_id):
            put, jobs = self._listeners.put(lb_id, listener, group.id, present, _tags_for(listener.tags, known))
            self._memory.known.put(lb_id, known.with_listener(listener.key, put))
        return jobs

    def _delete_listener(self, operation: DeleteListener) -> Jobs:
        known, key = self._reads.known(operation.id), (operation.protocol, operation.port)
        present = known.listeners.get(key)
        if present is None:
            return {}
        with self._memory.cache.changing(operation.id):
            jobs = self._listeners.delete(present.id)
            self._memory.known.put(operation.id, known.with_listener(key, None))
        return jobs

    def _group(self, lb_id: str, pool: str) -> tuple[Known, KnownGroup]:
        known = self._reads.known(lb_id)
        if pool not in known.groups:
            raise NotFound(f"network load balancer {lb_id} has no pool {pool}")
        return known, known.groups[pool]


def _tags_for(own: Mapping[str, str], known: Known) -> Mapping[str, str]:
    """The tags of a new part: its own on a load balancer that others own, otherwise the load balancer's."""
    if own:
        return own
    return {key: value for key, value in _without_system(known.tags).items() if key != LEFT_TAG}


def _without_system(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags that the cloud lets anyone set."""
    return {key: value for key, value in tags.items() if not key.startswith(("acs:", "aliyun"))}
