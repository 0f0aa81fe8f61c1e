"""The site of one stack on the stand-in of Alibaba Cloud: an account with a cluster that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.alicloud.account import ACCESS_KEY, REGION, SECRET
from local.alicloud.cluster import CLUSTER_ID, NETWORK_ID, WORKERS
from local.alicloud.contents import KINDS
from local.alicloud.folder import site_root
from local.alicloud.revision import revision
from local.api_site import SiteConfig
from local.cluster_site import ClusterSite
from local.stack_file import NAMESPACE
from local.state_folder import StateFolder


class AliCloudSite(ClusterSite):
    """The site of one stack."""

    CLOUD = "the stand-in of Alibaba Cloud"
    API_TITLE = "the stand-in of Alibaba Cloud"
    API_MODULE = "local.alicloud"
    CLUSTER_ID = CLUSTER_ID
    KINDS = tuple(KINDS.values())
    EMPTY = "the account is empty"
    STATUS_TITLE = "Alibaba Cloud (a stand-in)"
    BALANCER_COLUMN = "type"
    SIMULATED = (
        "load balancers have listeners and servers but forward nothing: the stand-in has the API and no data plane"
    )

    def __init__(self, state_dir: Path, stack: str, *, registry: Path | None = None) -> None:
        super().__init__(StateFolder(site_root(state_dir, stack)), registry=registry)

    def revision(self) -> str:
        """The revision of the stand-in's modules."""
        return revision()

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a stack's runs: the account's key, and nothing of the user's own."""
        kept = {
            name: value for name, value in inherited.items() if not name.startswith(("ALIBABA_CLOUD_", "ALICLOUD_"))
        }
        return {**kept, "ALIBABA_CLOUD_ACCESS_KEY_ID": ACCESS_KEY, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": SECRET}

    def stack_config(self) -> SiteConfig:
        """The account's endpoint and region, and the cluster that is there: its ids, its nodes and its kubeconfig."""
        existing: dict[str, Any] = {
            "clusterId": CLUSTER_ID,
            "networkId": NETWORK_ID,
            "podCidr": str(self.block.network(0).pods),
            "machines": [*WORKERS],
        }
        account = {"endpoint": self.endpoint, "region": REGION}
        return SiteConfig(
            {f"{NAMESPACE}:alicloud": account, f"{NAMESPACE}:existing": existing},
            {f"{NAMESPACE}:kubeconfig": self.cluster_kubeconfig()},
        )
