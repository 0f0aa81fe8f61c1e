"""Interprets lists of load balancers and target groups beside the cached details. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from cloud_controller.clouds.aws import upstream
from cloud_controller.clouds.aws.memory import Known, View
from cloud_controller.clouds.aws.names import PREFIX, pool_name
from cloud_controller.clouds.aws.target_groups import check_of


def may_be_ours(target_group: View, vpc_id: str) -> bool:
    """Whether a target group may belong to the controller. Names never change, so others' tags need not be read."""
    name = str(target_group["TargetGroupName"])
    return (name.startswith(PREFIX) and target_group.get("VpcId") == vpc_id) or upstream.is_name(name)


def balancer_may_be_ours(view: View, vpc_id: str) -> bool:
    """Whether a load balancer may belong to the controller: any in the VPC, because users may choose names."""
    return view.get("VpcId") == vpc_id or upstream.is_name(str(view["LoadBalancerName"]))


def leads_from(target_group: View, load_balancers: Collection[str]) -> bool:
    """Whether a listener of one of these load balancers (ARNs) forwards to it."""
    return any(arn in load_balancers for arn in target_group.get("LoadBalancerArns") or ())


def pool_of_view(target_group: View, port: int) -> str:
    """The pool of a target group behind the listener of this port."""
    protocol, target_type = str(target_group["Protocol"]), str(target_group["TargetType"])
    return pool_name(protocol, port, target_type, target_group.get("IpAddressType") or "ipv4")


def is_attached(view: View) -> bool:
    """Whether any listener forwards to the target group."""
    return bool(view.get("LoadBalancerArns"))


def brought_up_to_date(known: Known, views: Mapping[str, View], *, all_listed: bool) -> Known | None:
    """The cached details updated by the lists; None if they indicate more changes."""
    arns = {name: str(view["TargetGroupArn"]) for name, view in views.items()}
    believed = {name: group.arn for name, group in known.groups.items() if all_listed or name in arns}
    if believed != arns:
        return None
    for name, view in views.items():
        group = known.groups[name]
        attached = is_attached(view)
        if group.attached is not None and group.attached != attached:
            return None
        check = check_of(view)
        if group.attached != attached or group.pool.health_check != check:
            changed = replace(group, attached=attached, pool=replace(group.pool, health_check=check))
            known = known.with_group(name, changed)
    return known
