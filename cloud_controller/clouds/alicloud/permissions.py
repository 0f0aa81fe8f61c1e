"""The controllers' permissions in RAM: every action that this cloud calls, and its callers, in one table."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration

_READ = re.compile(r"[a-z]+:(Describe|Get|List|Query)\w*")

CONTROLLERS = ("node", "node-lifecycle", "route", "service")
_MACHINES = ("node", "node-lifecycle", "route")
_ROUTE = ("route",)
_SERVICE = ("service",)
_LISTENERS = ("TCP", "UDP", "HTTP", "HTTPS")
_NOBODY = ()
"""Actions that need no permission."""


@dataclass(frozen=True, slots=True)
class Right:
    """Actions of a product, and the controllers that call them."""

    product: str
    actions: tuple[str, ...]
    controllers: tuple[str, ...]
    doctor: bool = False
    """Called by `cloud-controller doctor` alone, of what these controllers do."""


RIGHTS: tuple[Right, ...] = (
    Right("sts", ("AssumeRoleWithOIDC", "GetCallerIdentity"), _NOBODY),
    Right("ecs", ("DescribeInstances",), CONTROLLERS),
    Right("ecs", ("DescribeInstanceAttribute",), _MACHINES),
    Right("ecs", ("DescribeNetworkInterfaces",), (*_ROUTE, *_SERVICE)),
    Right("ecs", ("ModifyNetworkInterfaceAttribute",), _ROUTE),
    Right(
        "vpc", ("CreateRouteEntries", "DeleteRouteEntries", "DescribeRouteEntryList", "DescribeRouteTableList"), _ROUTE
    ),
    Right("vpc", ("DescribeEipAddresses", "DescribeVpcAttribute"), _SERVICE),
    Right(
        "slb",
        (
            *("AddVServerGroupBackendServers", "CreateDomainExtension", "CreateLoadBalancer", "CreateVServerGroup"),
            *(f"CreateLoadBalancer{protocol}Listener" for protocol in _LISTENERS),
            *(f"SetLoadBalancer{protocol}ListenerAttribute" for protocol in _LISTENERS),
            *("DeleteDomainExtension", "DeleteLoadBalancer", "DeleteLoadBalancerListener", "DeleteVServerGroup"),
            *("DescribeDomainExtensions", "DescribeHealthStatus", "DescribeLoadBalancerAttribute"),
            *("DescribeLoadBalancerListeners", "DescribeLoadBalancers", "DescribeVServerGroupAttribute"),
            *("DescribeVServerGroups", "ListTagResources", "ModifyLoadBalancerInstanceChargeType"),
            *("ModifyLoadBalancerInstanceSpec", "ModifyLoadBalancerInternetSpec", "RemoveVServerGroupBackendServers"),
            *(
                "SetDomainExtensionAttribute",
                "SetLoadBalancerDeleteProtection",
                "SetLoadBalancerModificationProtection",
            ),
            *("SetLoadBalancerName", "SetVServerGroupAttribute", "StartLoadBalancerListener"),
            *("StopLoadBalancerListener", "TagResources", "UntagResources"),
        ),
        _SERVICE,
    ),
    Right(
        "ecs",
        (
            *("AuthorizeSecurityGroup", "CreateSecurityGroup", "DeleteSecurityGroup"),
            *("DescribeSecurityGroupAttribute", "DescribeSecurityGroups", "RevokeSecurityGroup"),
        ),
        _SERVICE,
    ),
    Right(
        "nlb",
        (
            *("AddServersToServerGroup", "AssociateAdditionalCertificatesWithListener"),
            *("AttachCommonBandwidthPackageToLoadBalancer", "CreateListener", "CreateLoadBalancer"),
            *("CreateServerGroup", "DeleteListener", "DeleteLoadBalancer", "DeleteServerGroup"),
            *("DetachCommonBandwidthPackageFromLoadBalancer", "DisableLoadBalancerIpv6Internet"),
            *("DisassociateAdditionalCertificatesWithListener", "EnableLoadBalancerIpv6Internet"),
            *("GetListenerHealthStatus", "GetLoadBalancerAttribute", "ListAsynJobs", "ListListenerCertificates"),
            *("ListListeners", "ListLoadBalancers", "ListServerGroupServers", "ListServerGroups"),
            *("LoadBalancerJoinSecurityGroup", "LoadBalancerLeaveSecurityGroup", "RemoveServersFromServerGroup"),
            *("StartListener", "TagResources", "UntagResources", "UpdateListenerAttribute"),
            *("UpdateLoadBalancerAddressTypeConfig", "UpdateLoadBalancerAttribute", "UpdateLoadBalancerProtection"),
            *("UpdateLoadBalancerZones", "UpdateServerGroupAttribute", "UpdateServerGroupServersAttribute"),
        ),
        _SERVICE,
    ),
    Right("quotas", ("GetProductQuota",), _ROUTE),
    Right("quotas", ("GetProductQuota", "ListProductQuotaDimensions"), _SERVICE, doctor=True),
)
"""Every action that this cloud calls; a test compares it with the code, in both directions."""


def actions(controllers: Collection[str] = CONTROLLERS, *, doctor: bool = False) -> list[str]:
    """RAM's names of the actions that these controllers call; `doctor`: and `cloud-controller doctor`."""
    rights = [right for right in RIGHTS if {*right.controllers} & {*controllers} and (doctor or not right.doctor)]
    return sorted({f"{right.product}:{action}" for right in rights for action in right.actions})


def policy(region: str, controllers: Collection[str] = CONTROLLERS) -> dict[str, Any]:
    """The least-privilege RAM policy for a daemon that runs these controllers in this region.

    Raises InvalidConfiguration for an unknown controller.
    """
    return {"Version": "1", "Statement": statements(region, controllers)}


def statements(
    region: str, controllers: Collection[str] = CONTROLLERS, *, reads: bool = False, doctor: bool = False
) -> list[dict[str, Any]]:
    """Of `policy`: reads of everything, because not all have a resource; writes of each product in the region.

    `reads`: only what `cloud-controller doctor` calls. `doctor`: doctor has the daemon's credential.
    """
    for name in controllers:
        if name not in CONTROLLERS:
            why = f"{name!r} is not a controller on Alibaba Cloud"
            raise InvalidConfiguration("controllers", why, ", ".join(CONTROLLERS))
    calls = actions(controllers, doctor=reads or doctor)
    reading = [call for call in calls if _READ.fullmatch(call)]
    writes = [] if reads else [call for call in calls if call not in reading]
    resources = {"*": reading}
    for product in sorted({call.partition(":")[0] for call in writes}):
        resources[f"acs:{product}:{region}:*:*"] = [call for call in writes if call.startswith(f"{product}:")]
    return [{"Effect": "Allow", "Action": found, "Resource": [of]} for of, found in resources.items() if found]
