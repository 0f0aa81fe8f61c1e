"""The products that are simulated, and the table of their actions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from local.alicloud.account import Account
from local.alicloud.quota_models import QuotaModels
from local.alicloud.sdk import Schema, Sdk
from local.standin.actions import Action, ActionTable, Arguments
from local.standin.refusals import Refusal

TABLE: ActionTable[Account] = ActionTable()

Function = Callable[[Account, Arguments], dict[str, Any]]

# Of accounts that act for others; no action of the stand-in knows more than one.
_OF_OTHER_OWNERS = ("OwnerAccount", "OwnerId", "ResourceOwnerAccount", "ResourceOwnerId")


def _with_dry_run(function: Function) -> Function:
    """With DryRun the call is checked, carried out and undone."""

    def run(account: Account, arguments: Arguments) -> dict[str, Any]:
        result = function(account, arguments)
        if arguments.get("DryRun", False):
            message = "Request validation has been passed with DryRun flag set."
            raise Refusal(400, "DryRunOperation", message)
        return result

    return run


class Models(Protocol):
    """Where the schemas of a product's actions come from; see `sdk.Sdk`."""

    def require(self, action: str) -> None: ...
    def request_schema(self, action: str) -> Schema: ...
    def answer_schema(self, action: str) -> Schema: ...
    def as_json(self, action: str) -> frozenset[str]: ...
    def in_form(self, action: str) -> frozenset[str]: ...


@dataclass(frozen=True)
class Product:
    """One product: its name in endpoints, its API's version, its SDK."""

    name: str
    version: str
    package: str

    @functools.cached_property
    def sdk(self) -> Models:
        """Its SDK's models."""
        return Sdk(self.package) if self.package else QuotaModels()

    def action(self, name: str, *ignored: str) -> Callable[[Function], Function]:
        """Register an action; raises UnknownAction if the SDK has none of this name.

        `ignored` are parameters that change nothing here.
        """
        self.sdk.require(name)

        def register(function: Function) -> Function:
            TABLE.add(
                Action(
                    f"{self.name}.{name}",
                    _with_dry_run(function),
                    lambda: self.sdk.request_schema(name),
                    lambda: self.sdk.answer_schema(name),
                    frozenset({"RegionId", "ClientToken", *_OF_OTHER_OWNERS, *ignored}),
                )
            )
            return function

        return register


ECS = Product("ecs", "2014-05-26", "alibabacloud_ecs20140526")
VPC = Product("vpc", "2016-04-28", "alibabacloud_vpc20160428")
SLB = Product("slb", "2014-05-15", "alibabacloud_slb20140515")
NLB = Product("nlb", "2022-04-30", "alibabacloud_nlb20220430")
STS = Product("sts", "2015-04-01", "alibabacloud_sts20150401")
QUOTAS = Product("quotas", "2020-05-10", "")

BY_VERSION = {product.version: product for product in (ECS, VPC, SLB, NLB, STS, QUOTAS)}


def actions_of(product: Product) -> list[str]:
    """The simulated actions, by name."""
    prefix = f"{product.name}."
    return sorted(name.removeprefix(prefix) for name in TABLE.actions if name.startswith(prefix))
