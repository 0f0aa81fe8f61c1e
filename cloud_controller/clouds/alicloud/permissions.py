"""The controllers' permissions in RAM: every action that this cloud calls, and its callers, in one table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration

CONTROLLERS = ("node", "node-lifecycle", "route", "service")
_MACHINES = ("node", "node-lifecycle", "route")
_ROUTE = ("route",)
_NOBODY = ()
"""Actions that need no permission."""


@dataclass(frozen=True, slots=True)
class Right:
    """Actions of a product, and the controllers that call them."""

    product: str
    actions: tuple[str, ...]
    controllers: tuple[str, ...]


RIGHTS: tuple[Right, ...] = (
    Right("sts", ("AssumeRoleWithOIDC", "GetCallerIdentity"), _NOBODY),
    Right("ecs", ("DescribeInstances",), CONTROLLERS),
    Right("ecs", ("DescribeInstanceAttribute",), _MACHINES),
    Right("ecs", ("DescribeNetworkInterfaces", "ModifyNetworkInterfaceAttribute"), _ROUTE),
    Right(
        "vpc", ("CreateRouteEntries", "DeleteRouteEntries", "DescribeRouteEntryList", "DescribeRouteTableList"), _ROUTE
    ),
    Right("quotas", ("GetProductQuota",), _ROUTE),
)
"""Every action that this cloud calls; a test compares it with the code, in both directions."""


def actions(controllers: Collection[str] = CONTROLLERS) -> list[str]:
    """RAM's names of the actions that these controllers call."""
    rights = [right for right in RIGHTS if {*right.controllers} & {*controllers}]
    return sorted({f"{right.product}:{action}" for right in rights for action in right.actions})


def policy(controllers: Collection[str] = CONTROLLERS) -> dict[str, Any]:
    """The least-privilege RAM policy for a daemon that runs these controllers.

    Raises InvalidConfiguration for an unknown controller.
    """
    for name in controllers:
        if name not in CONTROLLERS:
            why = f"{name!r} is not a controller on Alibaba Cloud"
            raise InvalidConfiguration("controllers", why, ", ".join(CONTROLLERS))
    return {"Version": "1", "Statement": [{"Effect": "Allow", "Action": actions(controllers), "Resource": ["*"]}]}
