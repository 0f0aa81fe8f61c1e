"""Creates, updates and deletes whole NLBs. What takes longer than a call may wait is left to the next plan."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from cloud_controller.cloud import CloudError, Conflict, NotFound, Postponed, Unavailable
from cloud_controller.clouds.alicloud.nlb.memory import Known
from cloud_controller.clouds.alicloud.nlb.names import OWN_GROUP_TAG
from cloud_controller.clouds.alicloud.nlb.observed import observed
from cloud_controller.clouds.alicloud.nlb.tools import Tools
from cloud_controller.clouds.alicloud.nlb.wire import View, load_balancer_params, tags_of, token_of
from cloud_controller.clouds.alicloud.tags import tag_list
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import CreateLoadBalancer, DeleteLoadBalancer, UpdateLoadBalancer

Jobs = dict[str, str]
_PAST = ("CreateFailed", "Deleting", "Deleted")
"""Of load balancers that will never serve."""


class WholeLoadBalancers:
    """Safe to share between threads, one for each load balancer."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it with all its parts. What takes longer than a call may wait is left to the next plan, which finds
        the load balancer still being created."""
        model = operation.model
        view = self._made(model, operation.client_token)
        lb_id, waits = str(view["LoadBalancerId"]), False
        with self._tools.memory.cache.changing(lb_id):
            known = Known(view)
            try:
                known = self._with_groups(known, model, operation.client_token)
                known = replace(known, view=self._when_active(view))
                if known.view.get("LoadBalancerStatus") in _PAST:
                    self._tools.memory.known.put(lb_id, known)
                    # Left behind, each attempt would add one.
                    self._tools.writes.jobs.require(self.delete(DeleteLoadBalancer(lb_id)))
                    raise CloudError(f"Alibaba Cloud: nlb CreateLoadBalancer of {lb_id} failed")
                waits = known.view.get("LoadBalancerStatus") != "Active"
                if not waits:
                    known = self._with_front(known, model, operation.client_token)
                self._tools.memory.known.put(lb_id, known)
            except Postponed:
                waits = True
            except Conflict as error:
                # To the caller, Conflict says that the token is another's, and it would make a second load balancer.
                raise Unavailable(f"load balancer {lb_id} is not complete: {error}") from error
        own = self._tools.own_groups.of(lb_id) if model.attributes["source_ranges"] and not waits else None
        found = observed(known, own)
        # Unless all is there, it is still being created: the next read tells what is lacking.
        return replace(found, state=LoadBalancerState.PENDING, settled=False) if waits else found

    def _made(self, model: LoadBalancerModel, client_token: str) -> View:
        """The load balancer of this token, which may exist. Raises Conflict if the token has another owner's."""
        owner = Owner.of_tags(model.tags)
        # The API remembers a token for longer than its load balancer exists: then nothing is left to be found again.
        for token in (token_of(client_token), str(uuid.uuid4())):
            params = {"ClientToken": token, **load_balancer_params(model, self._tools.place.vpc_id)}
            lb_id = str(self._tools.writes.send("CreateLoadBalancer", params)[0]["LoadbalancerId"])
            self._tools.memory.made.put(lb_id, owner.uid if owner else "", anew=True)
            view = self._once_shown(lb_id)
            if view is None or view.get("LoadBalancerStatus") in _PAST:
                self._tools.memory.made.forget(lb_id)
                if view is not None and view["LoadBalancerStatus"] == "CreateFailed":
                    self._tools.writes.jobs.require(self.delete(DeleteLoadBalancer(lb_id)))
                continue
            if owner is None or not owner.owns(tags_of(view)):
                self._tools.memory.made.forget(lb_id)
                raise Conflict(f"load balancer {lb_id} of this token does not have the tags of {owner}")
            return view
        raise Unavailable(f"nlb CreateLoadBalancer: {lb_id} does not appear")

    def _once_shown(self, lb_id: str) -> View | None:
        found: list[View | None] = [None]

        def ask() -> bool:
            found[0] = self._tools.reads.view(lb_id)
            return found[0] is not None

        self._tools.writes.jobs.until(ask)
        return found[0]

    def _with_groups(self, known: Known, model: LoadBalancerModel, token: str) -> Known:
        """Create the server groups, all at once, and then add their servers."""
        jobs: Jobs = {}
        resource_group = model.attributes.get("resource_group_id")
        for pool in model.pools:
            # A repeated creation gets the same groups by their tokens.
            made = token_of(token, known.id, pool.name)
            group, more = self._tools.groups.create(known.id, pool, model.tags, resource_group, made)
            known, jobs = known.with_group(pool.name, group), jobs | more
        self._tools.writes.jobs.require(jobs)
        jobs = {}
        for pool in model.pools:
            made = token_of(token, known.id, pool.name, "servers")
            # The next plan adds what is refused, and says so.
            group, more, _ = self._tools.groups.add(known.groups[pool.name], pool.members, made)
            known, jobs = known.with_group(pool.name, group), jobs | more
        self._tools.writes.jobs.require(jobs)
        return known

    def _when_active(self, view: View) -> View:
        """The load balancer once it is created, or as it is when patience ends. Raises Unavailable if it disappears."""
        lb_id, found = str(view["LoadBalancerId"]), [view]

        def ask() -> bool:
            shown = self._tools.reads.view(lb_id)
            if shown is None:
                raise Unavailable(f"load balancer {lb_id} disappeared while it was being created")
            found.append(shown)
            return shown.get("LoadBalancerStatus") != "Provisioning"

        if view.get("LoadBalancerStatus") == "Provisioning":
            self._tools.writes.jobs.until(ask)
        return found[-1]

    def _with_front(self, known: Known, model: LoadBalancerModel, token: str) -> Known:
        """What CreateLoadBalancer cannot set, then the listeners: clients are limited before one can connect."""
        known, jobs = replace(known, view=self._tools.instances.put(known.view, model)), dict[str, str]()
        for listener in model.listeners:
            group = known.groups[listener.pool]
            made, more = self._tools.listeners.create(
                known.id, listener, group.id, model.tags, token_of(token, known.id, *map(str, listener.key))
            )
            known, jobs = known.with_listener(listener.key, made), jobs | more
        self._tools.writes.jobs.require(jobs)
        return known

    def update(self, operation: UpdateLoadBalancer) -> Jobs:
        """Set its attributes and tags; with tags without an owner, release it and its parts."""
        lb_id, model = operation.id, operation.model
        known = self._tools.reads.known(lb_id)
        expected = Owner.of_tags(model.tags) or Owner.of_tags(known.tags)
        view = self._owned(lb_id, expected)
        with self._tools.memory.cache.changing(lb_id):
            before = tags_of(view)
            if Owner.of_tags(model.tags) is None:
                self._tools.memory.made.forget(lb_id)
                self._release(known, expected)
                view = view if not model.attributes else self._tools.instances.put(view, model)
                self._tools.writes.retag("loadbalancer", lb_id, before, model.tags)
            else:
                # The tags say whether there is a security group of its own, so they come first.
                self._tools.writes.retag("loadbalancer", lb_id, without_system(before), without_system(model.tags))
                view = self._tools.instances.put({**view, "Tags": tag_list(model.tags)}, model)
            self._tools.memory.known.put(lb_id, replace(known, view={**view, "Tags": tag_list(model.tags)}))
        return {}

    def _owned(self, lb_id: str, owner: Owner | None) -> View:
        """The load balancer as it is now. Raises NotFound if it is gone, Conflict if it is not this owner's."""
        view = self._tools.reads.view(lb_id)
        if view is None:
            self._tools.memory.known.forget(lb_id)
            raise NotFound(f"load balancer {lb_id} no longer exists")
        if owner is None or owner.cluster_id != self._tools.place.cluster_id or not owner.owns(tags_of(view)):
            self._tools.memory.known.forget(lb_id)
            raise Conflict(f"load balancer {lb_id} does not have the tags of {owner}")
        return view

    def _release(self, known: Known, owner: Owner | None) -> None:
        """Take the owner's tags from the parts, before the load balancer itself loses them."""
        if owner is None:
            return
        for kind, parts in (
            ("listener", {each.id: each.listener.tags for each in known.listeners.values()}),
            ("servergroup", {each.id: each.pool.tags for each in known.groups.values()}),
        ):
            own = {part: tags for part, tags in parts.items() if owner.owns(tags)}
            self._tools.memory.shown(*own)
            self._tools.writes.retag_all(kind, {part: (tags, owner.released(tags)) for part, tags in own.items()})

    def delete(self, operation: DeleteLoadBalancer) -> Jobs:
        """Delete it and its parts as far as possible now. What is left is found by its tags."""
        lb_id, known = operation.id, self._tools.memory.known.get(operation.id)
        view = self._tools.reads.view(lb_id)
        groups = self._groups_of(lb_id, known)
        with self._tools.memory.cache.changing(lb_id):
            if view is not None:
                owner = Owner.of_tags(known.tags if known else tags_of(view))
                if owner is None or owner.cluster_id != self._tools.place.cluster_id or not owner.owns(tags_of(view)):
                    raise Conflict(f"load balancer {lb_id} no longer has the tags of its Service")
                if view.get("LoadBalancerStatus") == "Deleting":
                    raise Postponed(f"load balancer {lb_id} is being deleted")
                if OWN_GROUP_TAG in tags_of(view):
                    # No listener may serve while nobody is refused.
                    jobs: Jobs = {}
                    for listener in (known or self._tools.reads.known(lb_id)).listeners.values():
                        jobs |= self._tools.listeners.delete(listener.id)
                    self._tools.writes.jobs.require(jobs)
                    self._tools.instances.leave_own_group(view)
                self._tools.instances.unprotect(view)
                self._tools.memory.made.forget(lb_id)
                self._tools.writes.jobs.require(
                    self._tools.writes.delete("DeleteLoadBalancer", {"LoadBalancerId": lb_id})
                )
            elif any(OWN_GROUP_TAG in tags for tags in groups.values()):
                self._tools.own_groups.delete(lb_id)
            jobs = {}
            for group_id, tags in groups.items():
                try:
                    jobs |= self._tools.groups.delete(group_id, tags)
                except Conflict as error:
                    raise Postponed(f"server group {group_id} of {lb_id} is still in use") from error
            self._tools.memory.known.forget(lb_id)
        return jobs

    def _groups_of(self, lb_id: str, known: Known | None) -> dict[str, Mapping[str, str]]:
        """The tags of the server groups that were made for it in this cluster, by ID."""
        if known is not None:
            found = {group.id: group.pool.tags for group in known.groups.values()}
        else:
            found = {group_id: tags_of(view) for group_id, view in self._tools.reads.groups_of(lb_id).items()}
        return {
            group_id: tags for group_id, tags in found.items() if tags.get(CLUSTER_TAG) == self._tools.place.cluster_id
        }


def without_system(tags: Mapping[str, str]) -> dict[str, str]:
    """The tags that the cloud lets anyone set."""
    return {key: value for key, value in tags.items() if not key.startswith(("acs:", "aliyun"))}
