"""How much of the region's quotas of load balancers and target groups is used, for `cloud-controller doctor`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cloud_controller.cloud import Quota
from cloud_controller.clouds.aws.client import Api

_PAGE = 400
"""The most in an answer of these operations."""


def quotas(api: Api, controllers: Collection[str]) -> Sequence[Quota]:
    """See `Quotas.quotas`: what the service controller creates, and everybody else in the region."""
    if "service" not in controllers:
        return []
    told = [
        *api.pages("elb", "DescribeAccountLimits", "Limits"),
        *api.pages("elbv2", "DescribeAccountLimits", "Limits"),
    ]
    limits = {each["Name"]: each["Max"] for each in told}
    classic = [*api.pages("elb", "DescribeLoadBalancers", "LoadBalancerDescriptions", PageSize=_PAGE)]
    balancers = [*api.pages("elbv2", "DescribeLoadBalancers", "LoadBalancers", PageSize=_PAGE)]
    groups = [*api.pages("elbv2", "DescribeTargetGroups", "TargetGroups", PageSize=_PAGE)]
    # By AWS's names of limits (API references of both generations, "Limit").
    used = {
        "classic-load-balancers": ("classic load balancers", len(classic)),
        "network-load-balancers": ("network load balancers", sum(each["Type"] == "network" for each in balancers)),
        "target-groups": ("target groups", len(groups)),
    }
    return [Quota(of, count, int(limits[name])) for name, (of, count) in used.items() if name in limits]
