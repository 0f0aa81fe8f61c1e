"""Every request that this cloud makes, and its callers, in one table; also as access rules of a credential."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

_MACHINES = ("node", "node-lifecycle", "route")
_ROUTE = ("route",)
_SERVICE = ("service",)
SECURITY_GROUPS = "manage-security-groups"
"""A name beside those of controllers: the rights that this option of the cloud config needs besides."""
DOCTOR = "doctor"
"""Another: the rights that `cloud-controller doctor` needs besides those of the service controller."""
_KINDS = ("healthmonitors", "listeners", "loadbalancers", "pools")
_PATHS = {"network": "/**v2.0/", "load-balancer": "/**v2**/", "compute": "/**v2.1/**"}
"""How paths of access rules begin: endpoints may have a part before the version (`/compute/v2.1`), Octavia's a minor
version, and Nova's the project's ID after it."""


@dataclass(frozen=True, slots=True)
class Right:
    """Requests to a service, and the controllers that make them."""

    service: str
    requests: tuple[str, ...]
    controllers: tuple[str, ...]


RIGHTS: tuple[Right, ...] = (
    Right("compute", ("GET servers", "GET servers/ID", "GET servers/detail"), _MACHINES),
    Right(
        "network",
        (
            *("GET ports", "GET ports/ID", "GET routers/ID", "PUT ports/ID", "PUT routers/ID"),
            *("PUT routers/ID/add_extraroutes", "PUT routers/ID/remove_extraroutes"),
        ),
        _ROUTE,
    ),
    Right(
        "network",
        (
            *("DELETE floatingips/ID", "GET floatingips", "GET floatingips/ID", "GET networks", "GET subnets"),
            "POST floatingips",
            "PUT floatingips/ID",
        ),
        _SERVICE,
    ),
    Right(
        "network",
        (
            *("DELETE security-group-rules/ID", "DELETE security-groups/ID", "GET ports", "GET ports/ID"),
            *("GET security-groups", "POST security-group-rules", "POST security-groups", "PUT ports/ID"),
        ),
        (SECURITY_GROUPS,),
    ),
    Right("network", ("GET quotas/ID/details",), (DOCTOR,)),
    Right("load-balancer", ("GET lbaas/quotas/ID",), (DOCTOR,)),
    Right(
        "load-balancer",
        (
            *(
                f"{method} lbaas/{kind}"
                for kind in ("listeners", "loadbalancers", "pools")
                for method in ("GET", "POST")
            ),
            *("GET lbaas/healthmonitors", "POST lbaas/healthmonitors", "GET lbaas/loadbalancers/ID"),
            *("GET lbaas/loadbalancers/ID/status", "GET lbaas/pools/ID/members", "PUT lbaas/pools/ID/members"),
            *(f"PUT lbaas/{kind}/ID" for kind in _KINDS),
            *(f"DELETE lbaas/{kind}/ID" for kind in _KINDS),
        ),
        _SERVICE,
    ),
)


def requests(controllers: Collection[str]) -> list[str]:
    """The requests of these controllers, sorted: `GET network ports/ID`."""
    return sorted(
        {
            f"{method} {right.service} {path}"
            for right in RIGHTS
            if {*controllers} & {*right.controllers}
            for method, _, path in (each.partition(" ") for each in right.requests)
        }
    )


def access_rules(controllers: Collection[str]) -> list[dict[str, str]]:
    """The access rules of an application credential that allows these requests and nothing else."""
    rules = []
    for request in requests(controllers):
        method, service, path = request.split(" ")
        rule = {"service": service, "method": method, "path": f"{_PATHS[service]}{re.sub(r'ID', '*', path)}"}
        rules.append(rule)
    return rules
