"""Names that more than one module of this cloud needs, and its Pulumi components and simulator too."""

from __future__ import annotations

from typing import Literal

PROVIDER_NAME = "alicloud"
"""The cloud's name, and the scheme of provider IDs in their form as a URI."""
ProviderIdFormat = Literal["region", "uri"]
VERSIONS = {
    "ecs": "2014-05-26",
    "vpc": "2016-04-28",
    "slb": "2014-05-15",
    "nlb": "2022-04-30",
    "sts": "2015-04-01",
    "quotas": "2020-05-10",
}
"""The version of each product's API; `slb` is CLB's."""

ACK_TAG = "ack.aliyun.com"
"""The key of the tag that ACK gives the machines of a cluster; the value is the cluster's ID."""
