"""How much of the region's quotas of load balancers and target groups is used, for `cloud-controller doctor`.

The names of limits are AWS's (API references of both generations, "Limit").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cloud_controller.cloud import Quota
from cloud_controller.clouds.aws.client import Api

_PAGE = 400
"""The most in an answer of these operations."""


def quotas(api: Api, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
    """See `Quotas.quotas`: what the service controller creates, and everybody else in the region."""
    return [lambda: _of_classic(api), lambda: _of_network(api)] if "service" in controllers else []


def _of_classic(api: Api) -> Sequence[Quota]:
    limits = _by_name([*api.pages("elb", "DescribeAccountLimits", "Limits")])
    balancers = [*api.pages("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions", PageSize=_PAGE)]
    return [Quota("classic load balancers", len(balancers), limits.get("classic-load-balancers"))]


def _of_network(api: Api) -> Sequence[Quota]:
    limits = _by_name([*api.pages("elbv2", "DescribeAccountLimits", "Limits")])
    balancers = [*api.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers", PageSize=_PAGE)]
    groups = [*api.pages("elbv2", "DescribeTargetGroups", "TargetGroups", PageSize=_PAGE)]
    network = sum(each["Type"] == "network" for each in balancers)
    return [
        Quota("network load balancers", network, limits.get("network-load-balancers")),
        Quota("target groups", len(groups), limits.get("target-groups")),
    ]


def _by_name(limits: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    return {each["Name"]: int(each["Max"]) for each in limits}
