"""Reads network load balancers: lists in a few calls, and the details that the cache lacks.

Lists show which load balancers exist, with state, security groups, subnets and health checks. More is read only if a
list shows something that the cache does not know, or an entry has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cloud_controller.cloud import Conflict, NotFound
from cloud_controller.clouds.aws import upstream
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.listeners import Listeners
from cloud_controller.clouds.aws.memory import Known, KnownGroup, KnownListener, Memory, View, id_in, name_in
from cloud_controller.clouds.aws.names import LISTENER_ATTRIBUTES_TAG, LOAD_BALANCER_TAG, POOL_TAG
from cloud_controller.clouds.aws.network_model import addresses_of
from cloud_controller.clouds.aws.network_views import (
    balancer_may_be_ours,
    brought_up_to_date,
    is_attached,
    leads_from,
    may_be_ours,
    pool_of_view,
)
from cloud_controller.clouds.aws.tags import from_tag_list, of_many, tags_of
from cloud_controller.clouds.aws.target_groups import TargetGroups, pool_of
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.model import CLUSTER_TAG, Adoptable, Owner


@dataclass(frozen=True, slots=True)
class Listed:
    """The lists of one moment: this cluster's load balancers by ID and target groups by ARN.

    They include upstream's; `refused` are upstream's load balancers that cannot be adopted.
    """

    load_balancers: Mapping[str, View]
    target_groups: Mapping[str, View]
    refused: Mapping[str, View] = field(default_factory=dict)


class NetworkReads:
    """Reads of one cluster's network load balancers. Safe to share between threads."""

    def __init__(
        self,
        api: Api,
        config: Config,
        memory: Memory,
        groups: TargetGroups,
        listeners: Listeners,
        concurrently: ConcurrentCalls,
    ) -> None:
        self._api = api
        self._config = config
        self._memory = memory
        self._groups = groups
        self._listeners = listeners
        self._concurrently = concurrently

    def all(self, vpc_id: str) -> Listed:
        """All of this cluster in its VPC; reads the details that the cache lacks."""
        since = self._memory.cache.moment()
        found = self._concurrently([self._load_balancers, lambda: [*self._groups.all()]])
        shown = (*self._memory.made.fresh().values(), *found[0])
        balancers = {each["LoadBalancerArn"]: self._by_id(each) for each in shown if balancer_may_be_ours(each, vpc_id)}
        groups = {each["TargetGroupArn"]: each for each in found[1] if may_be_ours(each, vpc_id)}
        balancers = {arn: each for arn, each in balancers.items() if each.get("Type") == "network"}
        self._forget_unadoptable(balancers)
        # A load balancer's tags expire with its other details.
        names = {each["LoadBalancerName"] for each in balancers.values()}
        old = {name for name in names if self._memory.last(name) is not None and self._memory.is_due(name)}
        self._read_tags([arn for arn in (*balancers, *groups) if self._lacks_tags(arn, old)])
        balancers = {arn: self._by_id(each) for arn, each in balancers.items()}
        mine = {arn: each for arn, each in balancers.items() if self._concerns_us(each, vpc_id)}
        upstreams = {arn for arn, each in mine.items() if upstream.is_name(each["LoadBalancerName"])}
        listed = Listed(
            {each["LoadBalancerName"]: each for each in mine.values()},
            {arn: each for arn, each in groups.items() if self._is_clusters(arn) or leads_from(each, upstreams)},
            {
                each["LoadBalancerName"]: each
                for arn, each in balancers.items()
                if arn not in mine and self.adoptable(each, vpc_id)
            },
        )
        self._memory.keep_only(listed.load_balancers, {*balancers, *groups}, since)
        self._learn(listed, since)
        return listed

    def some(self, ids: Collection[str], vpc_id: str) -> dict[str, View]:
        """Those of these that exist in this cluster: one call, and the details of new ones."""
        since = self._memory.cache.moment()
        found = [*self._by_name(ids)]
        self._read_tags([arn for each in found if self._memory.tags.get(arn := each["LoadBalancerArn"]) is None])
        views = {lb_id: view for lb_id, view in self._memory.made.fresh().items() if lb_id in ids}
        views |= {each["LoadBalancerName"]: each for each in map(self._by_id, found)}
        refused = {lb_id: each for lb_id, each in views.items() if not self._concerns_us(each, vpc_id)}
        refused = {lb_id: each for lb_id, each in refused.items() if self.adoptable(each, vpc_id)}
        views = {lb_id: each for lb_id, each in views.items() if self._concerns_us(each, vpc_id)}
        lacking = {lb_id: view for lb_id, view in views.items() if self._known(view) is None}
        if lacking:
            self._learn(Listed(lacking, self.target_groups(vpc_id, lacking.values())), since)
        for lb_id, view in views.items():
            self._memory.views.read(lb_id, view, since)
        return views | refused

    def adoptable(self, view: View, vpc_id: str) -> Adoptable | None:
        """What can be adopted of a load balancer with known tags."""
        tags = self._memory.tags.get(view["LoadBalancerArn"]) or {}
        return upstream.adoptable(view["LoadBalancerName"], view.get("VpcId"), tags, self._config, vpc_id)

    def target_groups(self, vpc_id: str, of: Iterable[View] = ()) -> dict[str, View]:
        """The cluster's target groups in its VPC, and those of these upstream load balancers, by ARN: one call."""
        groups = {each["TargetGroupArn"]: each for each in self._groups.all() if may_be_ours(each, vpc_id)}
        self._read_tags([arn for arn in groups if self._memory.tags.get(arn) is None])
        leading = {each["LoadBalancerArn"] for each in of if upstream.is_name(each["LoadBalancerName"])}
        return {arn: each for arn, each in groups.items() if self._is_clusters(arn) or leads_from(each, leading)}

    def tags(self, arns: Sequence[str]) -> dict[str, dict[str, str]]:
        """The current tags of these; deleted resources are absent."""
        return of_many(arns, self._tags_of, self._concurrently)

    def require_ownership(self, lb_id: str, arn: str, wanted: Mapping[str, str]) -> None:
        """Raise Conflict unless this load balancer currently has the owner's tags in `wanted`; NotFound if it is
        deleted."""
        tags = self.tags([arn]).get(arn)
        if tags is None:
            self._memory.forget(lb_id)
            raise NotFound(f"load balancer {lb_id} no longer exists")
        self._memory.tags.put(arn, tags)
        owner = Owner.of_tags(wanted)
        if owner is None or not owner.owns(tags):
            raise Conflict(f"load balancer {lb_id} exists, but does not have the tags of {owner}")

    # -------------------------------------------------------------------------------------------------------- lists

    def _load_balancers(self) -> list[dict[str, Any]]:
        return [*self._api.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers", PageSize=400)]

    def _by_name(self, ids: Collection[str]) -> Iterator[dict[str, Any]]:
        if len(ids) == 1:
            (lb_id,) = ids
            named = [arn for arn in self._memory.named(lb_id) if name_in(arn) != lb_id]
            # Several if others deleted one: it would fail a call for all.
            asked: list[dict[str, Any]] = [{"LoadBalancerArns": [arn]} for arn in named] or [{"Names": [lb_id]}]
            for each in asked:
                with suppress(NotFound):
                    yield from self._api.call("elbv2", "DescribeLoadBalancers", **each)["LoadBalancers"]
        elif ids:
            # With names in the request, one deleted load balancer would fail the whole call.
            yield from (each for each in self._load_balancers() if self._by_id(each)["LoadBalancerName"] in ids)

    def _by_id(self, view: View) -> View:
        """The load balancer with its ID as its name: they differ if a user chose the name."""
        arn = str(view["LoadBalancerArn"])
        return {**view, "LoadBalancerName": id_in(arn, self._memory.tags.get(arn) or {})}

    def _read_tags(self, arns: Sequence[str]) -> None:
        for arn, tags in self.tags(sorted(arns)).items():
            self._memory.tags.put(arn, tags)

    def _tags_of(self, arns: Sequence[str]) -> dict[str, dict[str, str]]:
        answer = self._api.call("elbv2", "DescribeTags", ResourceArns=[*arns])["TagDescriptions"]
        return {each["ResourceArn"]: tags_of(each) for each in answer}

    def _lacks_tags(self, arn: str, old: Collection[str]) -> bool:
        tags = self._memory.tags.get(arn)
        return tags is None or name_in(arn) in old or tags.get(LOAD_BALANCER_TAG) in old

    def _is_clusters(self, arn: str) -> bool:
        return (self._memory.tags.get(arn) or {}).get(CLUSTER_TAG) == self._config.cluster_id

    def _concerns_us(self, view: View, vpc_id: str) -> bool:
        """Whether it belongs to this cluster or can be adopted."""
        found = self.adoptable(view, vpc_id)
        return self._is_clusters(view["LoadBalancerArn"]) or (found is not None and found.refusal is None)

    def _forget_unadoptable(self, balancers: Mapping[str, View]) -> None:
        """Drop the tags of upstream's load balancers that lack the cluster's tag: it may have been added meanwhile."""
        for arn, each in balancers.items():
            tags, name = self._memory.tags.get(arn), each["LoadBalancerName"]
            lacking = upstream.is_name(name) and tags is not None and self._config.cluster_tag not in tags
            if lacking and not upstream.belongs_to_others(name, tags or {}, self._config):
                self._memory.tags.forget(arn)

    # ------------------------------------------------------------------------------------------------------ details

    def _learn(self, listed: Listed, since: int) -> None:
        """Cache what the lists show, and read the details that they only indicate."""
        groups: dict[str, dict[str, View]] = {lb_id: {} for lb_id in listed.load_balancers}
        for arn, each in listed.target_groups.items():
            tags = self._memory.tags.get(arn) or {}
            of, pool = tags.get(LOAD_BALANCER_TAG), tags.get(POOL_TAG)
            if of in groups and pool is not None:
                groups[of][pool] = each
        for lb_id, pools in self._not_adopted_yet(listed).items():
            groups[lb_id] |= pools
        lacking = []
        new = self._memory.made.fresh()
        for lb_id, view in listed.load_balancers.items():
            self._memory.views.read(lb_id, view, since)
            known = self._known(view)
            shown = None
            if known is not None and not self._memory.is_due(lb_id):
                shown = brought_up_to_date(known, groups[lb_id], all_listed=lb_id not in new)
            if shown is None:
                lacking.append(lb_id)
            elif shown != known:
                self._memory.read(lb_id, shown, since, anew=False)
        # Two rounds of concurrent calls: first the parts of each load balancer, then the details of each target group.
        self._read_details({each: (listed.load_balancers[each], groups[each]) for each in lacking}, since)

    def _not_adopted_yet(self, listed: Listed) -> dict[str, dict[str, View]]:
        """The target groups without this controller's tags of load balancers that can be adopted, by pool."""
        found: dict[str, dict[str, View]] = {}
        by_arn = {str(view["LoadBalancerArn"]): lb_id for lb_id, view in listed.load_balancers.items()}
        for arn, each in listed.target_groups.items():
            if LOAD_BALANCER_TAG not in (self._memory.tags.get(arn) or {}):
                for lb_id in {by_arn.get(lb_arn, "") for lb_arn in each.get("LoadBalancerArns") or ()} - {""}:
                    found.setdefault(lb_id, {})[arn] = each
        views = [(listed.load_balancers[lb_id], groups) for lb_id, groups in found.items() if upstream.is_name(lb_id)]
        names = self._concurrently([partial(self._pool_names, view, groups) for view, groups in views])
        return {
            view["LoadBalancerName"]: {name: groups[arn] for arn, name in of.items()}
            for (view, groups), of in zip(views, names, strict=True)
        }

    def _pool_names(self, view: View, groups: Mapping[str, View]) -> dict[str, str]:
        """By target group, the pool of the listener that forwards to it."""
        known = self._known(view)
        names = {group.arn: name for name, group in known.groups.items()} if known else {}
        if not groups.keys() <= names.keys():
            try:
                listeners = self._listeners.read(str(view["LoadBalancerArn"]), {}).values()
            except NotFound:  # It went meanwhile; the next look tells.
                return {}
            names = {each.pool: pool_of_view(groups[each.pool], each.port) for each in listeners if each.pool in groups}
        return {arn: names[arn] for arn in groups if arn in names}

    def _known(self, view: View) -> Known | None:
        known = self._memory.get(view["LoadBalancerName"])
        return known if known is not None and known.arn == view["LoadBalancerArn"] else None

    def _read_details(self, wanted: Mapping[str, tuple[View, Mapping[str, View]]], since: int) -> None:
        calls = [partial(self._group, name, each) for _, groups in wanted.values() for name, each in groups.items()]
        known_groups = iter(self._concurrently(calls))
        of = {lb_id: {name: next(known_groups) for name in groups} for lb_id, (_, groups) in wanted.items()}
        balancers = [partial(self._balancer, view, of[lb_id]) for lb_id, (view, _) in wanted.items()]
        for lb_id, known in zip(wanted, self._concurrently(balancers), strict=True):
            if known is not None:
                self._memory.read(lb_id, known, since)

    def _group(self, name: str, view: View) -> KnownGroup | None:
        arn = str(view["TargetGroupArn"])
        try:
            attributes, members = self._groups.attributes(arn), self._groups.health(arn)
        except NotFound:  # It went meanwhile; the next look tells.
            return None
        return KnownGroup(arn, pool_of(name, view, attributes, sorted(members)), is_attached(view))

    def _balancer(self, view: View, groups: Mapping[str, KnownGroup | None]) -> Known | None:
        arn = str(view["LoadBalancerArn"])
        present = {name: each for name, each in groups.items() if each is not None}
        try:
            pools = {each.arn: name for name, each in present.items()}
            marked = LISTENER_ATTRIBUTES_TAG in (self._memory.tags.get(arn) or {})
            found = self._listeners.read(arn, pools, with_attributes=marked)
            attributes = from_tag_list(
                self._api.call("elbv2", "DescribeLoadBalancerAttributes", LoadBalancerArn=arn)["Attributes"]
            )
        except NotFound:
            return None
        return Known(
            arn,
            attributes,
            {listener.port: KnownListener(each, listener) for each, listener in found.items()},
            present,
            addresses_of(view, self._memory.last(view["LoadBalancerName"])),
        )
