"""Alibaba Cloud on one machine: a stand-in that speaks the protocol of ECS, VPC, SLB (CLB), NLB and STS.

A site has, beside the stand-in, a cluster that is there already: a real control plane and real machines. Resources of
Alibaba Cloud's Pulumi package are recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.clouds import LocalCloud

if TYPE_CHECKING:
    from local.alicloud.site import AliCloudSite
    from local.plugins.provider import Provider
    from local.plugins.values import PropertyMap


def _site(state: Path, stack: str, section: Mapping[str, Any]) -> AliCloudSite:
    from local.alicloud.site import AliCloudSite

    del section
    return AliCloudSite(state, stack)


def _has_site(state: Path, stack: str) -> bool:
    from local.alicloud.folder import site_root

    return site_root(state, stack).exists()


def _provider(config: PropertyMap) -> Provider:
    from local.alicloud.recorded import recorder

    return recorder(config)


CLOUD = LocalCloud(
    name="alicloud",
    site=_site,
    requires={"simulated": True},
    has_site=_has_site,
    placeholders={
        "cloud-controller:alicloud": {"endpoint": "https://alicloud.invalid"},
        "cloud-controller:existing": {
            "clusterId": "c00000000000000000000000000000000",
            "networkId": "vpc-placeholder",
            "podCidr": "10.0.0.0/16",
        },
        "cloud-controller:kubeconfig": {"secure": ""},
    },
    providers={"alicloud": _provider},
)
