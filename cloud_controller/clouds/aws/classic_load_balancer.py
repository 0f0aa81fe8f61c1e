"""Classic load balancers: one function for each operation, with the calls that the difference needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound, Unavailable
from cloud_controller.clouds.aws.attributes import texts
from cloud_controller.clouds.aws.build_classic import POOL
from cloud_controller.clouds.aws.classic_listeners import ClassicListeners
from cloud_controller.clouds.aws.classic_model import (
    DEFAULTS,
    attribute_params,
    health_check_params,
    listener_params,
)
from cloud_controller.clouds.aws.classic_reads import ClassicReads, Details, Known
from cloud_controller.clouds.aws.classic_subnets import move
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.memory import LIFETIME
from cloud_controller.clouds.aws.names import load_balancer_name
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.tags import tag_list
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.clouds.common.refused_members import require_none, send_fit
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import CLUSTER_TAG, ObservedLoadBalancer, Owner, Pool
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
from cloud_controller.retries import RetryPolicy, call

_SHOWN = RetryPolicy(deadline=10.0)
"""How long to wait until AWS lists a new load balancer; after that, the controller retries the creation."""


class ClassicLoadBalancers:
    """The classic load balancers of one cluster. Their IDs are their names. Safe to share between threads."""

    def __init__(
        self,
        api: Api,
        config: Config,
        vpc_state: VpcState,
        groups: SecurityGroups,
        cache: Cache,
        concurrently: ConcurrentCalls,
    ) -> None:
        self._api = api
        self._config = config
        self._vpc_state = vpc_state
        self._groups = groups
        self._changing = cache.changing
        self._memory: Entries[Known] = Entries(cache, LIFETIME, spread=True)
        self._reads = ClassicReads(api, config, self._memory, groups, concurrently)
        self._listeners = ClassicListeners(api)
        self.functions: Mapping[type, Callable[[Any], None]] = {
            AdoptLoadBalancer: self._adopt,
            UpdateLoadBalancer: self._update,
            DeleteLoadBalancer: self._delete,
            PutPool: self._put_pool,
            AddMembers: self._add_members,
            RemoveMembers: self._remove_members,
            DeletePool: lambda _: None,  # The only pool is part of the load balancer.
            PutListener: self._put_listener,
            DeleteListener: self._delete_listener,
        }
        """The function for each operation on an existing load balancer."""

    @property
    def details(self) -> Details:
        """The details that AWS returns one by one, by name, for the checkpoint."""
        return self._reads.details()

    def restore(self, details: Details) -> None:
        """Restore the details of a checkpoint."""
        self._reads.restore(details)

    def read(self, names: Collection[str] | None = None) -> list[ObservedLoadBalancer]:
        """The cluster's load balancers, or those of these names that exist."""
        vpc_id = self._vpc_state.facts().vpc_id
        found, refused = self._reads.clusters(vpc_id, names)
        return [*(known.observed for known in found.values()), *refused]

    def health(self, name: str) -> Mapping[tuple[str, str, int], bool]:
        """Whether each instance passes its health check; instances of unknown health are absent."""
        states = self._api.call("elb", "DescribeInstanceHealth", LoadBalancerName=name)["InstanceStates"]
        return {
            (POOL, each["InstanceId"], 0): each["State"] == "InService" for each in states if each["State"] != "Unknown"
        }

    def create(self, operation: CreateLoadBalancer) -> ObservedLoadBalancer:
        """Create it completely; repeated with the same token, complete the first attempt instead of creating
        another."""
        model = operation.model
        name = load_balancer_name(model, operation.client_token)
        with self._changing(name):
            managed = model.attributes["ingress_rules"] is not None
            groups = self._groups.front(name, model)
            if managed:
                groups += self._groups.join(name)
            self._make(name, operation, groups)
            if not managed and (shared := self._groups.join(name)):
                # Until now nothing had the Service's tags. The shared group is added later, so that a crash never
                # leaves it behind.
                self._apply_groups(name, (*groups, *shared))
            self._listeners.put_policies(name, model.listeners)
            for pool in model.pools:
                # The health check must exist before the instances.
                self._put_check(name, pool)
            self._put_attributes(name, attribute_params(model.attributes, DEFAULTS))
            for pool in model.pools:
                self._register(name, pool.members)
        return call(partial(self._made, name), _SHOWN, idempotent=True)

    def _adopt(self, operation: AdoptLoadBalancer) -> None:
        """Add the owner's tags to its security groups, then to the load balancer."""
        name = operation.id
        known = self._of(name)
        tags = self._reads.tags([name]).get(name)
        if tags is None or Owner.of_tags(tags) is not None:
            raise Conflict(f"load balancer {name} was deleted or already has an owner")
        with self._changing(name):
            self._groups.adopt(name, known.groups, operation.tags)
            self._api.call("elb", "AddTags", LoadBalancerNames=[name], Tags=tag_list(operation.tags))
            self._remember(name, operation)

    def _update(self, operation: UpdateLoadBalancer) -> None:
        """Set exactly these tags, and the attributes that can be changed."""
        name, model = operation.id, operation.model
        known = self._of(name)
        actual, groups = known.observed.model, known.groups
        changed = {key for key, value in model.attributes.items() if actual.attributes.get(key) != value}
        with self._changing(name):
            if changed & {"ingress_rules", "security_groups"} or actual.tags != model.tags:
                groups = (*self._groups.front(name, model), *self._groups.join(name))
                if {*groups} != {*known.groups}:
                    self._apply_groups(name, groups)
                self._groups.drop(name, groups)
            if "subnets" in changed:
                zones = {subnet.id: subnet.zone for subnet in self._vpc_state.facts().subnets}
                before, wanted = (texts(each.attributes["subnets"]) for each in (actual, model))
                move(self._api, name, actual=before, wanted=wanted, zones=zones)
            self._put_attributes(name, attribute_params(model.attributes, actual.attributes))
            self._put_tags(name, model.tags, actual.tags)
            self._remember(name, operation, groups)

    def _put_pool(self, operation: PutPool) -> None:
        """Change the health check; the only pool exists as long as its load balancer."""
        with self._changing(operation.id):
            self._put_check(operation.id, operation.pool)
            self._remember(operation.id, operation)

    def _add_members(self, operation: AddMembers) -> None:
        """Register the instances that AWS accepts: a refused one must not block the following operations."""
        with self._changing(operation.id):
            refused = self._register(operation.id, operation.members)
            fit = tuple(member for member in operation.members if member not in refused)
            self._remember(operation.id, replace(operation, members=fit))
        require_none(refused)

    def _remove_members(self, operation: RemoveMembers) -> None:
        """Deregister the instances."""
        name, leaving = operation.id, {member.instance_id for member in operation.members}
        with self._changing(name):
            try:
                self._deregister(name, leaving)
            except CloudError as error:
                if error_code(error) != "InvalidInstance":
                    raise
                # One is no longer registered, and AWS deregistered none.
                views = self._reads.views([name])
                present = {each["InstanceId"] for view in views for each in view.get("Instances") or ()}
                self._deregister(name, leaving & present)
            self._remember(name, operation)

    def _put_listener(self, operation: PutListener) -> None:
        """Create the listener, or change it."""
        present = self._of(operation.id).observed.model.listeners
        with self._changing(operation.id):
            self._listeners.put(operation.id, operation.listener, present)
            self._remember(operation.id, operation)

    def _delete_listener(self, operation: DeleteListener) -> None:
        """Delete the listener; a missing one is a success."""
        present = self._of(operation.id).observed.model.listeners
        with self._changing(operation.id):
            for listener in present:
                if listener.key == (operation.protocol, operation.port):
                    self._listeners.delete(operation.id, listener, present)
            self._remember(operation.id, operation)

    def _delete(self, operation: DeleteLoadBalancer) -> None:
        """Delete it and its security groups; what is still in use remains for a later call."""
        name = operation.id
        with self._changing(name):
            view = next(iter(self._reads.views([name])), None)
            if view is not None:
                if self._reads.tags([name]).get(name, {}).get(CLUSTER_TAG) != self._config.cluster_id:
                    raise InvalidConfiguration(f"load balancer {name}", "does not have this cluster's tags")
                if not self._leave_first(name, view.get("SecurityGroups") or ()):
                    return
                self._api.call("elb", "DeleteLoadBalancer", LoadBalancerName=name)
            self._groups.delete(name)
            self._memory.forget(name)

    # ----------------------------------------------------------------------------------------------------- helpers

    def _made(self, name: str, _: int) -> ObservedLoadBalancer:
        """Read the result: a load balancer that already existed may differ in more than was set."""
        for made in self.read([name]):
            return made
        # Not a Conflict: no other load balancer has the name, so that no second one must be created.
        raise Unavailable(f"load balancer {name} was created, but AWS does not list it yet; the controller retries")

    def _of(self, name: str) -> Known:
        """The cached details, otherwise those read now. Raises NotFound if the cluster has no such load balancer."""
        known = self._memory.get(name)
        known = known or self._reads.clusters(self._vpc_state.facts().vpc_id, [name])[0].get(name)
        if known is None:
            raise NotFound(f"AWS: cluster {self._config.cluster_id} has no classic load balancer {name}")
        return known

    def _remember(self, name: str, operation: Operation, groups: tuple[str, ...] | None = None) -> None:
        known = self._memory.get(name)
        if known is not None:
            observed = replace(apply_operation(known.observed, operation), settled=True)
            self._memory.put(name, Known(observed, known.groups if groups is None else groups))

    def _make(self, name: str, operation: CreateLoadBalancer, groups: Sequence[str]) -> None:
        model = operation.model
        params: dict[str, Any] = {
            "Listeners": [listener_params(listener) for listener in model.listeners],
            "Subnets": [*texts(model.attributes["subnets"])],
            "SecurityGroups": [*groups],
            "Tags": tag_list(model.tags),
        }
        if model.attributes["scheme"] == "internal":
            params["Scheme"] = "internal"
        try:
            # A name is unique, so repeating a call whose response was lost is safe.
            self._call("CreateLoadBalancer", name, idempotent=True, **params)
        except Conflict as error:
            if error_code(error) != "DuplicateLoadBalancerName":
                raise
            owner = Owner.of_tags(model.tags)
            if owner is None or not owner.owns(self._reads.tags([name]).get(name, {})):
                why = f"a load balancer with this name exists, but does not have the tags of {owner}"
                raise InvalidConfiguration(
                    f"load balancer {name}", why, "no other load balancer with this name"
                ) from error

    def _leave_first(self, name: str, attached: Collection[str]) -> bool:
        """Without a group with the Service's tags, the load balancer must be deleted after the shared resources."""
        own = self._groups.own(name)
        named = [group for group in attached if group not in own]
        if self._groups.has_front(name) or not named:
            return True
        if len(named) < len(attached):
            self._apply_groups(name, named)
        return self._groups.delete(name)

    def _put_check(self, name: str, pool: Pool) -> None:
        self._call("ConfigureHealthCheck", name, HealthCheck=health_check_params(pool.health_check))

    def _put_attributes(self, name: str, params: Mapping[str, Any]) -> None:
        if params:
            self._call("ModifyLoadBalancerAttributes", name, LoadBalancerAttributes=dict(params))

    def _apply_groups(self, name: str, groups: Sequence[str]) -> None:
        self._call("ApplySecurityGroupsToLoadBalancer", name, SecurityGroups=[*dict.fromkeys(groups)])

    def _put_tags(self, name: str, wanted: Mapping[str, str], actual: Mapping[str, str]) -> None:
        if added := {key: value for key, value in wanted.items() if actual.get(key) != value}:
            self._api.call("elb", "AddTags", LoadBalancerNames=[name], Tags=tag_list(added))
        if removed := [{"Key": key} for key in sorted(actual.keys() - wanted.keys())]:
            self._api.call("elb", "RemoveTags", LoadBalancerNames=[name], Tags=removed)

    def _register(self, name: str, members: Sequence[Member]) -> dict[Member, CloudError]:
        """Register what AWS accepts; the others, and why not."""

        def send(members: Sequence[Member]) -> None:
            instances = _instances([member.instance_id for member in members])
            self._call("RegisterInstancesWithLoadBalancer", name, Instances=instances)

        return send_fit(
            [members],
            send,
            lambda error: error_code(error) == "InvalidInstance",
            lambda member: (member.instance_id,),
            lambda member: member,
        )

    def _deregister(self, name: str, instance_ids: Collection[str]) -> None:
        if instance_ids:
            self._call("DeregisterInstancesFromLoadBalancer", name, Instances=_instances(instance_ids))

    def _call(self, operation: str, name: str, *, idempotent: bool | None = None, **params: Any) -> None:
        self._api.call("elb", operation, idempotent=idempotent, LoadBalancerName=name, **params)


def _instances(ids: Collection[str]) -> list[dict[str, str]]:
    return [{"InstanceId": each} for each in sorted(ids)]
