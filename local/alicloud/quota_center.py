"""The quota center: how many custom routes a route table may have, and how many load balancers there may be."""

from __future__ import annotations

from typing import Any

from local.alicloud import clb_balancers, nlb_jobs
from local.alicloud.account import Account
from local.alicloud.products import QUOTAS
from local.standin.actions import Arguments
from local.standin.refusals import Refusal


@QUOTAS.action("ListProductQuotaDimensions")
def list_product_quota_dimensions(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The region, of NLB."""
    place = _place(account, arguments["ProductCode"])
    found = [{"DimensionKey": key, "DimensionValues": [value], "Requisite": True} for key, value in place.items()]
    return {"QuotaDimensions": found, "TotalCount": len(found)}


@QUOTAS.action("GetProductQuota")
def get_product_quota(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of routes and load balancers alone."""
    product, code = arguments["ProductCode"], arguments["QuotaActionCode"]
    place = {each["Key"]: each["Value"] for each in arguments.get("Dimensions", [])}
    limits: dict[tuple[str, str], tuple[int, str | None]] = {
        ("vpc", "vpc_quota_route_entrys_num"): (account.quotas.custom_routes, None),
        ("slb", "slb_quota_instances_num"): (account.quotas.load_balancers, clb_balancers.CLB),
        ("nlb", "nlb_quota_loadbalancers_num"): (account.quotas.load_balancers, nlb_jobs.BALANCER),
    }
    if (product, code) not in limits or place != _place(account, product):
        raise Refusal(501, "NotSimulated", f"the stand-in does not know the quota {product} {code} {place}")
    limit, kind = limits[product, code]
    usage = {} if kind is None else {"TotalUsage": float(len(account.store.all(kind)))}
    return {"Quota": {"ProductCode": product, "QuotaActionCode": code, "TotalQuota": float(limit), **usage}}


def _place(account: Account, product: str) -> dict[str, str]:
    """What a quota is of; that of NLB is each region's, the others are the account's."""
    return {"regionId": account.region} if product == "nlb" else {}
