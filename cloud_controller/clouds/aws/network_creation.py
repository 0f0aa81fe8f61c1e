"""Creates network load balancers with all parts, some of which may exist from an interrupted attempt.

Parts that have the Service's tags and pass no traffic come first, then the load balancer, its listeners last. After
an interruption, all of them are found by name and tags.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from cloud_controller.cloud import CloudError, Conflict, InvalidConfiguration, NotFound, Unavailable
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.attributes import NAME, SOURCE_NAT, load_balancer_defaults, texts
from cloud_controller.clouds.aws.client import Api, error_code
from cloud_controller.clouds.aws.listeners import Listeners
from cloud_controller.clouds.aws.memory import Known, KnownGroup, KnownListener, Memory, View
from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG, POOL_TAG, target_group_name
from cloud_controller.clouds.aws.network_model import ADDRESSES
from cloud_controller.clouds.aws.network_reads import NetworkReads
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.tags import tag_list
from cloud_controller.clouds.aws.target_groups import TargetGroups, with_defaults
from cloud_controller.clouds.aws.vpc_state import VpcState
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.backends import Member
from cloud_controller.load_balancers.model import LoadBalancerModel, Owner, Pool


class NetworkCreation:
    """Creates load balancers and their target groups. Safe to share between threads."""

    def __init__(
        self,
        api: Api,
        vpc_state: VpcState,
        security_groups: SecurityGroups,
        memory: Memory,
        reads: NetworkReads,
        groups: TargetGroups,
        listeners: Listeners,
        concurrently: ConcurrentCalls,
    ) -> None:
        self._api = api
        self._vpc_state = vpc_state
        self._security_groups = security_groups
        self._memory = memory
        self._reads = reads
        self._groups = groups
        self._listeners = listeners
        self._concurrently = concurrently

    def load_balancer(self, name: str, model: LoadBalancerModel) -> tuple[View, Known, tuple[str, ...]]:
        """Create it; return AWS's description, the cached details and its security groups.

        Raises InvalidConfiguration before any creation if another load balancer has the chosen name.
        """
        self._require_free_name(model)
        fronts, made = self._concurrently.both(
            partial(self._security_groups.front, name, model),
            [partial(self.group, name, pool, model.tags) for pool in model.pools],
        )
        attached = (*fronts, *self._security_groups.join(name))
        groups = {group.pool.name: group for group in made}
        view, refused = self._concurrently.both(
            partial(self._made, name, model, attached),
            [call for pool in model.pools for call in self._exchange(groups[pool.name], pool)],
        )
        unfit = {member for each in refused for member in each}
        arn = str(view["LoadBalancerArn"])
        self._memory.tags.put(arn, {**model.tags, **_own_id(name, model)})
        view = {**view, "LoadBalancerName": name}
        self._memory.made.put(name, view, anew=True)
        attributes, arns = self._concurrently.both(
            partial(self._write_attributes, arn, model),
            [partial(self._listeners.create, arn, each, groups[each.pool].arn, model.tags) for each in model.listeners],
        )
        listeners = zip(model.listeners, arns, strict=True)
        known = Known(
            arn,
            attributes,
            {listener.port: KnownListener(each, listener) for listener, each in listeners},
            {pool.name: _filled(groups[pool.name], pool, unfit) for pool in model.pools},
            {key: texts(model.attributes.get(key)) for key in ADDRESSES},
        )
        return view, known, attached

    def _require_free_name(self, model: LoadBalancerModel) -> None:
        for name in texts(model.attributes.get(NAME)):
            try:
                found = self._api.call("elbv2", "DescribeLoadBalancers", Names=[name])["LoadBalancers"]
            except NotFound:
                continue
            owner = Owner.of_tags(model.tags)
            for arn, tags in self._reads.tags([each["LoadBalancerArn"] for each in found]).items():
                if owner is None or not owner.owns(tags):
                    where = f"annotation {CATALOGUE.by_argument['name'].name}"
                    why = f"another load balancer ({arn}) already has the name {name!r}"
                    raise InvalidConfiguration(where, why, "a name that no other load balancer in the region has")

    def group(self, lb_id: str, pool: Pool, tags: Mapping[str, str]) -> KnownGroup:
        """The pool's target group with its registered targets; created if necessary."""
        tags = {**tags, LOAD_BALANCER_TAG: lb_id, POOL_TAG: pool.name}
        group = self._taken_over(lb_id, pool)
        if group is None:
            name = target_group_name(lb_id, pool.name, Owner.of_tags(tags))
            arn = self._groups.create(name, pool, self._vpc_state.facts().vpc_id, tags)
            group = KnownGroup(arn, replace(pool, members=(), attributes=with_defaults(pool)))
        self._memory.tags.put(group.arn, tags)
        return group

    def fill(self, group: KnownGroup, pool: Pool) -> tuple[KnownGroup, dict[Member, CloudError]]:
        """Register exactly the pool's members, as far as AWS accepts them; the others, and why not."""
        calls = self._concurrently(self._exchange(group, pool))
        refused = {member: error for each in calls for member, error in each.items()}
        return _filled(group, pool, refused), refused

    def _taken_over(self, lb_id: str, pool: Pool) -> KnownGroup | None:
        """An existing target group, with the pool's settings applied."""
        arn = self._memory.groups(lb_id).get(pool.name)
        if arn is None:
            return None
        try:
            members = self._groups.health(arn).keys()
            self._groups.change(arn, pool, None)
        except NotFound:
            return None
        return KnownGroup(arn, replace(pool, members=tuple(members)))

    def _exchange(self, group: KnownGroup, pool: Pool) -> list[Callable[[], dict[Member, CloudError]]]:
        present, wanted = {*group.pool.members}, {*pool.members}
        added = [member for member in pool.members if member not in present]
        return self._groups.exchange(group.arn, added, sorted(present - wanted))

    def _made(self, name: str, model: LoadBalancerModel, security_groups: Collection[str]) -> View:
        aws_name = next(iter(texts(model.attributes.get(NAME))), name)
        params = {
            "Name": aws_name,
            "Type": "network",
            "Scheme": model.attributes["scheme"],
            "IpAddressType": model.attributes["ip_address_type"],
            "SecurityGroups": [*security_groups],
            "Tags": tag_list({**model.tags, **_own_id(name, model)}),
            **subnet_params(model, texts(model.attributes["subnets"])),
            **source_nat_params(model),
        }
        try:
            made: View = self._api.call("elbv2", "CreateLoadBalancer", **params)["LoadBalancers"][0]
        except Conflict as error:
            if error_code(error) != "DuplicateLoadBalancerName":
                raise
            # It exists with other settings, but no list has shown it. Once one does, it is changed instead of created.
            made = self._api.call("elbv2", "DescribeLoadBalancers", Names=[aws_name])["LoadBalancers"][0]
            self._reads.require_ownership(name, str(made["LoadBalancerArn"]), model.tags)
            raise Unavailable(
                f"load balancer {name} already exists with other settings; the controller reads it and retries"
            ) from error
        return made

    def _write_attributes(self, arn: str, model: LoadBalancerModel) -> dict[str, str]:
        defaults = load_balancer_defaults(str(model.attributes["scheme"]))
        wanted = settable(model)
        differing = {key: value for key, value in wanted.items() if defaults.get(key) != value}
        if differing:
            listed = tag_list(differing)
            self._api.call("elbv2", "ModifyLoadBalancerAttributes", LoadBalancerArn=arn, Attributes=listed)
        return {**defaults, **wanted}


def settable(model: LoadBalancerModel) -> dict[str, str]:
    """The attributes of the load balancer by their AWS names, which all contain a dot."""
    return {key: str(value) for key, value in model.attributes.items() if "." in key and value is not None}


def subnet_params(model: LoadBalancerModel, subnets: Collection[str]) -> dict[str, Any]:
    """The subnets as API parameters, with chosen addresses if any."""
    of_model = texts(model.attributes["subnets"])
    chosen = {
        key: dict(zip(of_model, texts(model.attributes.get(attribute)), strict=False))
        for attribute, key in ADDRESSES.items()
    }
    if not any(chosen.values()):
        return {"Subnets": [*subnets]}
    own = {subnet: {key: of[subnet] for key, of in chosen.items() if subnet in of} for subnet in subnets}
    return {"SubnetMappings": [{"SubnetId": subnet, **own[subnet]} for subnet in subnets]}


def source_nat_params(model: LoadBalancerModel) -> dict[str, Any]:
    """Empty without source NAT: not every region supports the parameter."""
    return {"EnablePrefixForIpv6SourceNat": "on"} if model.attributes.get(SOURCE_NAT) == "on" else {}


def _own_id(lb_id: str, model: LoadBalancerModel) -> dict[str, str]:
    """The tag with the ID of a load balancer whose name a user chose."""
    return {LOAD_BALANCER_TAG: lb_id} if model.attributes.get(NAME) else {}


def _filled(group: KnownGroup, pool: Pool, unfit: Collection[Member]) -> KnownGroup:
    members = tuple(member for member in pool.members if member not in unfit)
    return replace(group, pool=replace(group.pool, members=members))
