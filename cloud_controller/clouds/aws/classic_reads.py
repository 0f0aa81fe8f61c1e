"""Reads classic load balancers.

AWS's lists contain everything except tags (20 load balancers a call) and attributes (one a call). Those are read for
new load balancers, after changes by others, and once an hour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.aws.classic_model import DETAILS, attributes_of, listeners_of, pool_of
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.config import Config
from cloud_controller.clouds.aws.names import PREFIX
from cloud_controller.clouds.aws.network_model import name_of
from cloud_controller.clouds.aws.security_groups import SecurityGroups
from cloud_controller.clouds.aws.tags import of_many, tags_of
from cloud_controller.clouds.aws.upstream import adoptable, belongs_to_others, is_name, model_name, not_adopted
from cloud_controller.clouds.common.cache import Entries
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import (
    CLUSTER_TAG,
    Adoptable,
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
)

_PAGE = 400

View = Mapping[str, Any]
"""A load balancer from DescribeLoadBalancers."""

Attributes = Mapping[str, Value | None]
Details = Mapping[str, Attributes]
"""Attributes by load balancer name."""


@dataclass(frozen=True, slots=True)
class Known:
    """The cached details of a load balancer: as the controllers see it, and its security groups."""

    observed: ObservedLoadBalancer
    groups: tuple[str, ...]


class ClassicReads:
    """Reads of one cluster's classic load balancers. Safe to share between threads."""

    def __init__(
        self,
        api: Api,
        config: Config,
        memory: Entries[Known],
        groups: SecurityGroups,
        concurrently: ConcurrentCalls,
    ) -> None:
        self._api = api
        self._config = config
        self._memory = memory
        self._groups = groups
        self._concurrently = concurrently
        self._restored: dict[str, Attributes] = {}
        self._of_others: Entries[dict[str, str]] = Entries(memory.cache)

    def details(self) -> Details:
        """The cached attributes that lists do not contain, by name."""
        found = {name: known.observed.model.attributes for name, known in self._memory.all().items()}
        return {name: {k: v for k, v in each.items() if k in DETAILS} for name, each in found.items()}

    def restore(self, details: Details) -> None:
        """Restore an earlier process's `details`; newer cached values take precedence."""
        self._restored = dict(details)

    def clusters(
        self, vpc_id: str, names: Collection[str] | None = None
    ) -> tuple[dict[str, Known], list[ObservedLoadBalancer]]:
        """The cluster's load balancers in its VPC by name, or those of these names that exist.

        Includes upstream's; the second part are upstream's load balancers that cannot be adopted.
        """
        since = self._memory.cache.moment()
        views = {
            each["LoadBalancerName"]: each
            for each in self.views(names)
            # Names and VPCs never change, so others' tags need not be read.
            if (each["LoadBalancerName"].startswith(PREFIX) and each.get("VPCId") == vpc_id)
            or is_name(each["LoadBalancerName"])
        }
        tags = self._tags_known(views)
        found_adoptable = {
            name: each
            for name in tags
            if (each := adoptable(name, views[name].get("VPCId"), tags[name], self._config, vpc_id)) is not None
        }
        refused = [not_adopted(name, each) for name, each in found_adoptable.items() if each.refusal is not None]
        own = [
            name
            for name, each in tags.items()
            if (each.get(CLUSTER_TAG) == self._config.cluster_id or name in found_adoptable)
            and not any(lb.id == name for lb in refused)
        ]
        models = {name: self._model(views[name], tags[name]) for name in own}
        unknown = [name for name in own if self._memory.get(name) is None]
        details = {name: self._remembered_details(name, models[name]) for name in own}
        lacking = [name for name in own if details[name] is None]
        details |= zip(lacking, self._concurrently(partial(self._details, name) for name in lacking), strict=True)
        found = {}
        for name in own:
            attributes = details[name]
            if attributes is not None:
                known = _known(views[name], models[name], attributes, found_adoptable.get(name))
                found[name] = self._memory.read(name, known, since, anew=name in lacking or name in unknown)
        if names is None:
            self._restored = {}
        # What the list does not show does not exist, and may be created again.
        for name in set(self._memory.all() if names is None else names) - found.keys():
            self._memory.forget(name)
        return found, refused

    def views(self, names: Collection[str] | None) -> Iterator[View]:
        """All load balancers of the region, or those of these names that exist, whoever owns them."""
        if names is None or len(names) > 1:
            # With names in the request, one deleted load balancer would fail the whole call.
            for each in self._api.pages("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions", PageSize=_PAGE):
                if names is None or each["LoadBalancerName"] in names:
                    yield each
        elif names:
            try:
                answer = self._api.call("elb", "DescribeLoadBalancers", LoadBalancerNames=[*names])
            except NotFound:
                return
            yield from answer["LoadBalancerDescriptions"]

    def tags(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The current tags of these, by name; deleted ones are absent."""
        return of_many(names, self._tags_of, self._concurrently)

    def _tags_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        answer = self._api.call("elb", "DescribeTags", LoadBalancerNames=[*names])["TagDescriptions"]
        return {each["LoadBalancerName"]: tags_of(each) for each in answer}

    def _tags_known(self, views: Mapping[str, View]) -> dict[str, dict[str, str]]:
        """The tags of these; those of other clusters' upstream load balancers are read only once."""
        known = {name: tags for name, tags in self._of_others.all().items() if name in views}
        told = self.tags(views.keys() - known)
        for name, tags in told.items():
            if belongs_to_others(name, tags, self._config):
                self._of_others.put(name, tags)
        return known | told

    def _model(self, view: View, tags: Mapping[str, str]) -> LoadBalancerModel:
        """The model from a list, without the details."""
        name = view["LoadBalancerName"]
        attributes = {
            "type": "classic",
            "scheme": view["Scheme"],
            "subnets": tuple(sorted(view.get("Subnets") or ())),
            **self._groups.attributes(name, view.get("SecurityGroups") or ()),
        }
        shown = name_of(tags) or model_name(name, tags, self._config.cluster_id)
        return LoadBalancerModel(shown, attributes, listeners_of(view), (pool_of(view),), tags)

    def _remembered_details(self, name: str, model: LoadBalancerModel) -> Attributes | None:
        """The cached attributes of an unchanged load balancer; None: they must be read."""
        known = self._memory.get(name)
        if known is None:
            return self._restored.pop(name, None)
        if self._memory.is_due(name):
            return None
        left = known.observed.model
        same = replace(left, attributes={key: left.attributes.get(key) for key in model.attributes})
        return left.attributes if _ordered(same) == _ordered(model) else None

    def _details(self, name: str) -> Attributes | None:
        try:
            answer = self._api.call("elb", "DescribeLoadBalancerAttributes", LoadBalancerName=name)
        except NotFound:  # It went meanwhile; the next look tells.
            return None
        return attributes_of(answer["LoadBalancerAttributes"])


def _known(view: View, model: LoadBalancerModel, details: Attributes, adoptable: Adoptable | None) -> Known:
    observed = ObservedLoadBalancer(
        id=view["LoadBalancerName"],
        state=LoadBalancerState.READY,
        model=replace(model, attributes={**details, **model.attributes}),
        ingress=(Ingress(hostname=view["DNSName"]),),
        created_at=view["CreatedTime"].isoformat(),
        adoptable=adoptable,
    )
    return Known(observed, tuple(view.get("SecurityGroups") or ()))


def _ordered(model: LoadBalancerModel) -> LoadBalancerModel:
    pools = tuple(replace(pool, members=tuple(sorted(pool.members))) for pool in model.pools)
    return replace(model, listeners=tuple(sorted(model.listeners, key=lambda each: each.key)), pools=pools)
