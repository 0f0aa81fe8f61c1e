"""The operations on NLBs, each with the calls that it needs. Each returns the jobs that nobody has waited for yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from cloud_controller.cloud import CloudError, NotFound
from cloud_controller.clouds.alicloud.nlb.memory import Known, KnownGroup
from cloud_controller.clouds.alicloud.nlb.server_groups import Refused
from cloud_controller.clouds.alicloud.nlb.tools import Tools
from cloud_controller.clouds.alicloud.nlb.whole import WholeLoadBalancers, without_system
from cloud_controller.clouds.common.refused_members import require_none, told_when_postponed
from cloud_controller.load_balancers.model import Owner
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

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        whole = WholeLoadBalancers(tools)
        self.create = whole.create
        self.functions: Mapping[type, Callable[[Any], Jobs]] = {
            AdoptLoadBalancer: self._adopt,
            UpdateLoadBalancer: whole.update,
            DeleteLoadBalancer: whole.delete,
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
        if isinstance(operation, AddMembers):
            self._tools.memory.interfaces.forget(*(each.address for each in operation.members))
        known = self._tools.memory.known.get(operation.id)
        if known is not None:
            self._tools.memory.servers.forget(*(group.id for group in known.groups.values()))
            self._tools.memory.certificates.forget(*(listener.id for listener in known.listeners.values()))
        self._tools.memory.known.forget(operation.id)

    def _adopt(self, operation: AdoptLoadBalancer) -> Jobs:
        raise CloudError(f"load balancer {operation.id} cannot be adopted: no other controller's NLBs are taken over")

    # --------------------------------------------------------------------------------------------- pools and members

    def _put_pool(self, operation: PutPool) -> Jobs:
        """Create the server group with its servers, or change its settings."""
        lb_id, pool = operation.id, operation.pool
        known, refused = self._tools.reads.known(lb_id), Refused()
        group = known.groups.get(pool.name)
        with self._tools.memory.cache.changing(lb_id):
            if group is None:
                resource_group = known.view.get("ResourceGroupId")
                group, jobs = self._tools.groups.create(lb_id, pool, _tags_for(pool.tags, known), resource_group)
                self._tools.writes.jobs.require(jobs)
                group, jobs, refused = self._tools.groups.add(group, pool.members)
            else:
                group, jobs = self._tools.groups.change(group, pool)
            self._tools.memory.known.put(lb_id, known.with_group(pool.name, group))
        return self._unless_refused(jobs, refused)

    def _add_members(self, operation: AddMembers) -> Jobs:
        known, group = self._group(operation.id, operation.pool)
        with self._tools.memory.cache.changing(operation.id):
            group, jobs, refused = self._tools.groups.add(group, operation.members)
            self._tools.memory.known.put(operation.id, known.with_group(operation.pool, group))
        return self._unless_refused(jobs, refused)

    def _unless_refused(self, jobs: Jobs, refused: Refused) -> Jobs:
        if refused:
            with told_when_postponed(refused):
                self._tools.writes.jobs.require(jobs)
            require_none(refused)
        return jobs

    def _remove_members(self, operation: RemoveMembers) -> Jobs:
        known, group = self._group(operation.id, operation.pool)
        with self._tools.memory.cache.changing(operation.id):
            group, jobs = self._tools.groups.remove(group, operation.members)
            self._tools.memory.known.put(operation.id, known.with_group(operation.pool, group))
        return jobs

    def _delete_pool(self, operation: DeletePool) -> Jobs:
        known = self._tools.reads.known(operation.id)
        group = known.groups.get(operation.name)
        if group is None:
            return {}
        with self._tools.memory.cache.changing(operation.id):
            jobs = self._tools.groups.delete(group.id, group.pool.tags)
            self._tools.memory.known.put(operation.id, known.with_group(operation.name, None))
        return jobs

    # ----------------------------------------------------------------------------------------------------- listeners

    def _put_listener(self, operation: PutListener) -> Jobs:
        lb_id, listener = operation.id, operation.listener
        known, group = self._group(lb_id, listener.pool)
        present = known.listeners.get(listener.key)
        if present is not None and not listener.tags and Owner.of_tags(known.tags) is not None:
            listener = replace(listener, tags=present.listener.tags)
        with self._tools.memory.cache.changing(lb_id):
            put, jobs = self._tools.listeners.put(lb_id, listener, group.id, present, _tags_for(listener.tags, known))
            self._tools.memory.known.put(lb_id, known.with_listener(listener.key, put))
        return jobs

    def _delete_listener(self, operation: DeleteListener) -> Jobs:
        known, key = self._tools.reads.known(operation.id), (operation.protocol, operation.port)
        present = known.listeners.get(key)
        if present is None:
            return {}
        with self._tools.memory.cache.changing(operation.id):
            jobs = self._tools.listeners.delete(present.id)
            self._tools.memory.known.put(operation.id, known.with_listener(key, None))
        return jobs

    def _group(self, lb_id: str, pool: str) -> tuple[Known, KnownGroup]:
        known = self._tools.reads.known(lb_id)
        if pool not in known.groups:
            raise NotFound(f"network load balancer {lb_id} has no pool {pool}")
        return known, known.groups[pool]


def _tags_for(own: Mapping[str, str], known: Known) -> Mapping[str, str]:
    """The tags of a new part: its own on a load balancer that others own, otherwise the load balancer's."""
    if own or Owner.of_tags(known.tags) is None:
        return own
    return {key: value for key, value in without_system(known.tags).items() if key != LEFT_TAG}
