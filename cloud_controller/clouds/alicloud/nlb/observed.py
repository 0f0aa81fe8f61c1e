"""Turns what is known of an NLB into an observed load balancer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cloud_controller.clouds.alicloud.nlb.memory import Known
from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroup
from cloud_controller.clouds.alicloud.nlb.wire import View, load_balancer_attributes, words
from cloud_controller.load_balancers.model import (
    CLUSTER_UID_TAG,
    Ingress,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)

_STATES = {
    "Provisioning": LoadBalancerState.PENDING,
    "Active": LoadBalancerState.READY,
    # It serves; changes have to wait.
    "Configuring": LoadBalancerState.READY,
    "Deleting": LoadBalancerState.DELETING,
    "Deleted": LoadBalancerState.DELETING,
    # It can only be deleted.
    "CreateFailed": LoadBalancerState.PARTIAL,
}
_UNSETTLED = frozenset({"Provisioning", "Configuring", "Deleting", "Deleted"})


def observed(known: Known, own: OwnGroup | None) -> ObservedLoadBalancer:
    """The observed load balancer. `own`: its own security group, if it has one."""
    view = known.view
    status = str(view.get("LoadBalancerStatus") or "")
    attributes = load_balancer_attributes(view)
    groups = words(attributes["security_group_ids"])
    if own is not None:
        attributes["security_group_ids"] = tuple(each for each in groups if each != own.id)
        # A group that the load balancer has not joined admits and refuses nobody.
        dual_stack = attributes["address_ip_version"] == "DualStack"
        attributes["source_ranges"] = own.source_ranges(dual_stack=dual_stack) if own.id in groups else ()
    return ObservedLoadBalancer(
        id=known.id,
        state=_STATES.get(status, LoadBalancerState.FAILED),
        state_reason=_reason(view, status),
        model=LoadBalancerModel(
            name=str(view.get("LoadBalancerName") or known.id),
            attributes=attributes,
            listeners=tuple(each.listener for _, each in sorted(known.listeners.items())),
            pools=tuple(each.pool for _, each in sorted(known.groups.items())),
            tags=known.tags,
        ),
        ingress=(Ingress(hostname=str(view["DNSName"])),) if view.get("DNSName") else (),
        created_at=_moment(view.get("CreateTime")),
        settled=status not in _UNSETTLED,
        network=view.get("VpcId"),
    )


def left_behind(lb_id: str, tags: Mapping[str, str]) -> ObservedLoadBalancer:
    """A load balancer of which only server groups with these tags are left."""
    owner = Owner.of_tags(tags)
    if owner is not None and owner.name:
        tags = owner.tags | {key: value for key, value in tags.items() if key == CLUSTER_UID_TAG}
    model = LoadBalancerModel(lb_id, tags=tags)
    return ObservedLoadBalancer(lb_id, LoadBalancerState.PARTIAL, model, settled=False)


def _reason(view: View, status: str) -> str | None:
    locks = [f"{lock.get('LockType')}: {lock.get('LockReason')}" for lock in view.get("OperationLocks") or ()]
    return "; ".join(locks) or (None if status in _STATES else f"its status is {status or 'unknown'}")


def _moment(created: object) -> str:
    """When it was created, alike in lists (a text) and in its details (milliseconds)."""
    if isinstance(created, int):
        return datetime.fromtimestamp(created / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(created or "")
