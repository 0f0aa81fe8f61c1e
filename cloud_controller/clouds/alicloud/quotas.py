"""How much of the quotas of load balancers is used, for `cloud-controller doctor`.

Quota Center counts what everybody uses. Which quotas there are: "Quotas" in CLB's, "NLB quotas" in NLB's user guide.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any

from cloud_controller.cloud import NotFound, Quota
from cloud_controller.clouds.alicloud.client import Client

_QUOTAS = (
    ("classic load balancers", "slb", "slb_quota_instances_num"),
    ("network load balancers", "nlb", "nlb_quota_loadbalancers_num"),
)


def quotas(client: Client, region: str, controllers: Collection[str]) -> Sequence[Callable[[], Sequence[Quota]]]:
    """See `Quotas.quotas`: what the service controller creates."""
    if "service" not in controllers:
        return []
    return [functools.partial(_read, client, region, *each) for each in _QUOTAS]


def _read(client: Client, region: str, of: str, product: str, code: str) -> Sequence[Quota]:
    asked: dict[str, Any] = {"ProductCode": product, "QuotaActionCode": code}
    # Some products count by region, others by account. Which of them do, Quota Center alone knows.
    found = client.call("quotas", "ListProductQuotaDimensions", {"ProductCode": product}).get("QuotaDimensions") or []
    if any(each["DimensionKey"] == "regionId" for each in found):
        asked["Dimensions"] = [{"Key": "regionId", "Value": region}]
    try:
        quota = client.call("quotas", "GetProductQuota", asked)["Quota"]
    except NotFound:
        # Not every region has every product.
        return [Quota(of, None, None)]
    used, limit = (None if quota.get(each) is None else int(quota[each]) for each in ("TotalUsage", "TotalQuota"))
    return [Quota(of, used, limit)]
