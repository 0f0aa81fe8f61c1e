"""Sets the attributes of an existing NLB, each with the call that the API has for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cloud_controller.clouds.alicloud.nlb.names import OWN_GROUP_TAG
from cloud_controller.clouds.alicloud.nlb.own_group import OwnGroups
from cloud_controller.clouds.alicloud.nlb.wire import (
    PROTECTION_REASON,
    Params,
    View,
    load_balancer_attributes,
    tags_of,
    words,
    zone_mappings,
)
from cloud_controller.clouds.alicloud.nlb.writes import Writes
from cloud_controller.load_balancers.catalogue import Value
from cloud_controller.load_balancers.model import LoadBalancerModel

Attributes = Mapping[str, Value | None]


class Instances:
    """The load balancers without their listeners and server groups. Each takes one change at a time."""

    def __init__(self, writes: Writes, own_groups: OwnGroups) -> None:
        self._writes = writes
        self._own_groups = own_groups

    def put(self, view: View, model: LoadBalancerModel) -> View:
        """Make the load balancer that `view` shows the model's, but for its tags. Returns what it is then."""
        wanted, before = model.attributes, load_balancer_attributes(view)
        view = self._limit_clients(view, model)
        differs = {key for key, value in wanted.items() if before.get(key) != value}
        if "bandwidth_package_id" in differs and (package := before["bandwidth_package_id"]):
            # A load balancer that has one cannot become private.
            self._do(view, "DetachCommonBandwidthPackageFromLoadBalancer", BandwidthPackageId=package)
        if "address_type" in differs:
            # Public addresses come with the change, so it says which.
            mappings = zone_mappings(wanted, addresses=False) if wanted["address_type"] == "Internet" else None
            self._do(
                view, "UpdateLoadBalancerAddressTypeConfig", AddressType=wanted["address_type"], ZoneMappings=mappings
            )
        zones = {key for key in differs if key == "zones" or key.startswith("private_ipv4.")}
        if zones or ("address_type" not in differs and any(key.startswith("eip.") for key in differs)):
            self._do(view, "UpdateLoadBalancerZones", ZoneMappings=zone_mappings(wanted))
        if "ipv6_address_type" in differs:
            public = wanted["ipv6_address_type"] == "Internet"
            self._do(view, "EnableLoadBalancerIpv6Internet" if public else "DisableLoadBalancerIpv6Internet")
        if "bandwidth_package_id" in differs and (package := wanted["bandwidth_package_id"]):
            self._do(view, "AttachCommonBandwidthPackageToLoadBalancer", BandwidthPackageId=package)
        named = {"LoadBalancerName": model.name} if view.get("LoadBalancerName") != model.name else {}
        crossing = {"CrossZoneEnabled": wanted["cross_zone_enabled"]} if "cross_zone_enabled" in differs else {}
        if named or crossing:
            self._do(view, "UpdateLoadBalancerAttribute", **named, **crossing)
        protection = _protection(wanted, differs)
        if protection:
            self._do(view, "UpdateLoadBalancerProtection", **protection)
        return _applied(view, model)

    def unprotect(self, view: View) -> None:
        """Take the deletion protection off, if it is on."""
        if (view.get("DeletionProtectionConfig") or {}).get("Enabled"):
            self._do(view, "UpdateLoadBalancerProtection", DeletionProtectionEnabled=False)

    def leave_own_group(self, view: View) -> None:
        """Leave the load balancer's own security group, and delete it. IT ADMITS EVERYBODY FROM THEN ON."""
        own = self._own_groups.of(str(view["LoadBalancerId"]))
        if own is not None and own.id in (view.get("SecurityGroupIds") or ()):
            self._do(view, "LoadBalancerLeaveSecurityGroup", SecurityGroupIds=[own.id])
        self._own_groups.delete(str(view["LoadBalancerId"]))

    def _limit_clients(self, view: View, model: LoadBalancerModel) -> View:
        """Join and leave security groups; nothing is left before what replaces it is joined."""
        lb_id, present = str(view["LoadBalancerId"]), [*(view.get("SecurityGroupIds") or ())]
        ranges = words(model.attributes["source_ranges"])
        marked = OWN_GROUP_TAG in tags_of(view)
        own = self._own_groups.of(lb_id) if marked else None
        dual_stack = model.attributes["address_ip_version"] == "DualStack"
        admitted = own.source_ranges(dual_stack=dual_stack) if own is not None else ()
        if ranges and (own is None or admitted != ranges or own.id not in present):
            own = self._own_groups.put(lb_id, ranges, model.tags, dual_stack=dual_stack)
        wanted = {*present} - ({own.id} if own else set())
        if "security_group_ids" in model.attributes:
            wanted = {*words(model.attributes["security_group_ids"])}
        if ranges and own is not None:
            wanted.add(own.id)
        if joined := sorted(wanted - {*present}):
            self._do(view, "LoadBalancerJoinSecurityGroup", SecurityGroupIds=joined)
        if left := sorted({*present} - wanted):
            self._do(view, "LoadBalancerLeaveSecurityGroup", SecurityGroupIds=left)
        if own is not None and not ranges:
            self._own_groups.delete(lb_id)
        return {**view, "SecurityGroupIds": sorted(wanted)}

    def _do(self, view: View, action: str, **params: object) -> None:
        self._writes.finish(action, {"LoadBalancerId": view["LoadBalancerId"], **params})


def _protection(wanted: Attributes, differs: Collection[str]) -> Params:
    params: Params = {}
    if "deletion_protection" in differs:
        params["DeletionProtectionEnabled"] = wanted["deletion_protection"]
    if "modification_protection" in differs:
        params["ModificationProtectionStatus"] = wanted["modification_protection"]
        if wanted["modification_protection"] == "ConsoleProtection":
            params["ModificationProtectionReason"] = PROTECTION_REASON
    return params


def _applied(view: View, model: LoadBalancerModel) -> View:
    """The load balancer as the API would show it with the model's attributes."""
    wanted = {**load_balancer_attributes(view), **model.attributes}
    addresses = {zone["ZoneId"]: zone for zone in view.get("ZoneMappings") or ()}
    zones = []
    for mapping in zone_mappings(wanted):
        zone = {"ZoneId": mapping.pop("ZoneId"), "VSwitchId": mapping.pop("VSwitchId")}
        known = (addresses.get(zone["ZoneId"], {}).get("LoadBalancerAddresses") or [{}])[0]
        zones.append({**zone, "LoadBalancerAddresses": [{**known, **mapping}]})
    return {
        **view,
        "LoadBalancerName": model.name,
        "AddressType": wanted["address_type"],
        "Ipv6AddressType": wanted["ipv6_address_type"],
        "ZoneMappings": zones,
        "BandwidthPackageId": wanted["bandwidth_package_id"],
        "CrossZoneEnabled": wanted["cross_zone_enabled"],
        "DeletionProtectionConfig": {"Enabled": wanted["deletion_protection"]},
        "ModificationProtectionConfig": {"Status": wanted["modification_protection"]},
    }
