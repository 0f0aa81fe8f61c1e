"""What builds need of Alibaba Cloud, assumed: for plans without the cloud. Pure."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.build import AliCloudBuilder, BuildFacts
from cloud_controller.clouds.alicloud.config import Config
from cloud_controller.clouds.descriptor import Assumed
from cloud_controller.load_balancers.facts import Fact
from cloud_controller.load_balancers.model import Object

_VPC = "vpc-assumed"
_ANYWHERE = ("0.0.0.0/0", "::/0")


def assumed(cluster_id: str, _: Object) -> Assumed:
    """See `CloudDescriptor.assumed`."""
    config = Config(cluster_id, "cn-assumed", _VPC, vswitch_id="vsw-assumed", zone_id="cn-assumed-a")
    return Assumed(AliCloudBuilder(config), Fact(BuildFacts(_VPC, _ANYWHERE)))
