"""The quota center: how many custom routes a route table may have."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.products import QUOTAS
from local.standin.actions import Arguments
from local.standin.refusals import Refusal

ROUTES: Final = {"ProductCode": "vpc", "QuotaActionCode": "vpc_quota_route_entrys_num"}


@QUOTAS.action("GetProductQuota")
def get_product_quota(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of routes alone."""
    asked = {name: arguments[name] for name in ROUTES}
    if asked != ROUTES:
        raise Refusal(501, "NotSimulated", f"the stand-in does not know the quota {' '.join(asked.values())}")
    return {"Quota": {**asked, "TotalQuota": float(account.quotas.custom_routes)}}
