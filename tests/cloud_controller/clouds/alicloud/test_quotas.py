"""The quotas that doctor judges: of what the service controller creates, as Quota Center counts it."""

from __future__ import annotations

from cloud_controller.cloud import Quota, Quotas
from cloud_controller.clouds.alicloud.quotas import quotas
from tests.cloud_controller.clouds.alicloud.account import Account
from tests.cloud_controller.clouds.alicloud.fake_http import client, refusal

NO_DIMENSIONS = {"QuotaDimensions": [{"DimensionKey": "zoneId"}]}


def test_load_balancers_of_everybody_in_the_account_are_counted(alicloud: Account) -> None:
    cloud = alicloud.cloud()
    cloud._client.call("slb", "CreateLoadBalancer", {"InstanceChargeType": "PayByCLCU"})

    assert isinstance(cloud, Quotas)
    assert [quota for read in cloud.quotas(["service"]) for quota in read()] == [
        Quota("classic load balancers", 1, 60),
        Quota("network load balancers", 0, 60),
    ]


def test_a_quota_is_asked_for_its_region_where_the_product_counts_by_region() -> None:
    one, http = client(NO_DIMENSIONS, used(3), {"QuotaDimensions": [{"DimensionKey": "regionId"}]}, used(4))

    classic, network = quotas(one, "cn-hangzhou", ["service"])

    assert [each.used for each in (*classic(), *network())] == [3, 4]
    by_account, by_region = (sent.form for sent in http.sent if sent.action == "GetProductQuota")
    assert by_account == {"ProductCode": "slb", "QuotaActionCode": "slb_quota_instances_num"}
    assert by_region == {
        "ProductCode": "nlb",
        "QuotaActionCode": "nlb_quota_loadbalancers_num",
        "Dimensions.1.Key": "regionId",
        "Dimensions.1.Value": "cn-hangzhou",
    }


def test_that_quota_center_does_not_tell_the_use_of_a_quota_is_told() -> None:
    one, _ = client({}, {"Quota": {"TotalQuota": 60.0}})
    classic, _ = quotas(one, "cn-hangzhou", ["service"])

    assert classic() == [Quota("classic load balancers", None, 60)]


def test_that_a_region_lacks_a_quota_is_told() -> None:
    one, _ = client({}, used(3), {}, refusal("QUOTA.NOT.EXIST"))
    classic, network = quotas(one, "cn-hangzhou", ["service"])

    assert classic() == [Quota("classic load balancers", 3, 60)]
    assert network() == [Quota("network load balancers", None, None)]


def test_where_no_controller_makes_load_balancers_nothing_is_read() -> None:
    one, http = client()

    assert [*quotas(one, "cn-hangzhou", ["node", "route"])] == []
    assert http.sent == []


def used(count: float) -> dict[str, dict[str, float]]:
    return {"Quota": {"TotalQuota": 60.0, "TotalUsage": count}}
