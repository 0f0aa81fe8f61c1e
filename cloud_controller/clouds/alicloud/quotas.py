"""How much of the quotas of load balancers is used, for `cloud-controller doctor`.

Quota Center counts what everybody uses. Which quotas there are: "Quotas" in CLB's, "NLB quotas" in NLB's user guide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cloud_controller.cloud import Quota
from cloud_controller.clouds.alicloud.client import Client

_QUOTAS = (
    ("classic load balancers", "slb", "slb_quota_instances_num"),
    ("network load balancers", "nlb", "nlb_quota_loadbalancers_num"),
)


def quotas(client: Client, region: str, controllers: Collection[str]) -> Sequence[Quota]:
    """See `Quotas.quotas`: what the service controller creates. A quota whose use is not told is left out."""
    if "service" not in controllers:
        return []
    told = [(of, _told(client, region, product, code)) for of, product, code in _QUOTAS]
    return [
        Quota(of, int(quota["TotalUsage"]), int(quota["TotalQuota"]))
        for of, quota in told
        if quota.get("TotalUsage") is not None
    ]


def _told(client: Client, region: str, product: str, code: str) -> Mapping[str, Any]:
    asked: dict[str, Any] = {"ProductCode": product, "QuotaActionCode": code}
    # Some products count by region, others by account. Which of them do, Quota Center alone knows.
    found = client.call("quotas", "ListProductQuotaDimensions", {"ProductCode": product}).get("QuotaDimensions") or []
    if any(each["DimensionKey"] == "regionId" for each in found):
        asked["Dimensions"] = [{"Key": "regionId", "Value": region}]
    quota: Mapping[str, Any] = client.call("quotas", "GetProductQuota", asked)["Quota"]
    return quota
