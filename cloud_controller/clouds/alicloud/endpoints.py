"""The URLs of Alibaba Cloud's APIs: by product and region, or as the cloud config says. Pure."""

from __future__ import annotations

from cloud_controller.clouds.alicloud.config import METADATA, Config

_OLD_REGIONS = (
    "ap-southeast-1",
    "cn-beijing",
    "cn-hangzhou",
    "cn-hongkong",
    "cn-qingdao",
    "cn-shanghai",
    "cn-shenzhen",
    "us-east-1",
    "us-west-1",
)
_CENTRAL = {
    **{("slb", region): "slb.aliyuncs.com" for region in _OLD_REGIONS},
    ("ecs", "cn-hangzhou"): "ecs-cn-hangzhou.aliyuncs.com",
    ("vpc", "cn-hangzhou"): "vpc.aliyuncs.com",
    ("sts", "ap-south-1"): "sts.aliyuncs.com",
    ("sts", "ap-southeast-2"): "sts.aliyuncs.com",
}
"""Public hosts that are not named by the rule; a test compares them with the SDK's."""
_METADATA = "http://100.100.100.200"


def endpoint(config: Config, product: str) -> str:
    """The URL of a product's API, or of the metadata service (`METADATA`)."""
    if product in config.endpoints:
        return config.endpoints[product]
    if product == METADATA:
        return _METADATA
    if product == "quotas":
        return "https://quotas.aliyuncs.com"
    if config.network == "vpc":
        return f"https://{product}-vpc.{config.region}.aliyuncs.com"
    host = _CENTRAL.get((product, config.region), f"{product}.{config.region}.aliyuncs.com")
    return f"https://{host}"
