"""The site of one stack on the stand-in of Alibaba Cloud: an account with a cluster that is there already."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

from local.alicloud.account import ACCESS_KEY, REGION, SECRET
from local.alicloud.cluster import CLUSTER_ID, NETWORK_ID, WORKERS
from local.alicloud.contents import KINDS
from local.alicloud.folder import site_root
from local.alicloud.revision import revision
from local.alicloud.server import CONTENTS_PATH, TOKEN_HEADER
from local.api_site import ApiSite
from local.cluster_access import admin_kubeconfigs
from local.errors import SiteError
from local.stack_copy import SiteConfig
from local.stack_file import NAMESPACE
from local.state_folder import StateFolder
from local.status_text import render_site, section

ANSWER_SECONDS = 10.0
SIMULATED = "load balancers have listeners and servers but forward nothing: the stand-in has the API and no data plane"


class AliCloudSite(ApiSite):
    """The site of one stack."""

    CLOUD = "the stand-in of Alibaba Cloud"
    API_TITLE = "the stand-in of Alibaba Cloud"
    API_MODULE = "local.alicloud"

    def __init__(self, state_dir: Path, stack: str, *, registry: Path | None = None) -> None:
        super().__init__(StateFolder(site_root(state_dir, stack)), registry=registry)

    def revision(self) -> str:
        """The revision of the stand-in's modules."""
        return revision()

    def suspend(self) -> None:
        """Nothing to note: the next start boots the instances that are Running."""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a stack's engine: the account's key, and nothing of the user's own."""
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
        kubeconfig = admin_kubeconfigs(self.folder).get(CLUSTER_ID)
        if kubeconfig is None:
            raise SiteError(f"the control plane of cluster {CLUSTER_ID} has not started yet")
        account = {"endpoint": self.endpoint, "region": REGION}
        return SiteConfig(
            {f"{NAMESPACE}:alicloud": account, f"{NAMESPACE}:existing": existing},
            # Its own file, which stays the same: a stack would update what a new one gives it.
            {f"{NAMESPACE}:kubeconfig": kubeconfig.read_text()},
        )

    def pending(self) -> list[str]:
        """The cluster, until its control plane and all machines run."""
        return [] if self._contents()["ready"] else [f"cluster {CLUSTER_ID}"]

    def crashed_machines(self) -> list[str]:
        """None: the API starts a machine again whose process ended."""
        return []

    def boot_crashed_machines(self) -> None:
        """There are none."""

    def end_simulated_machines(self) -> None:
        """There are none: every machine of the cluster is real."""

    def after_up(self, cluster: str) -> list[str]:
        """What does not work here."""
        del cluster
        return [SIMULATED]

    def left(self) -> list[str]:
        """What stacks left beside the cluster of the account; empty for a stopped site. Raises SiteError."""
        if not self.is_running():
            return []
        return list(self._contents()["left"])

    def nothing_left(self) -> str | None:
        """The kinds that `left` looked for; None for a stopped site, where it did not look."""
        return f"the account is empty; checked: {', '.join(KINDS.values())}" if self.is_healthy() else None

    def objects(self, *, healthy: bool) -> dict[str, Any]:
        """The account's machines, routes and load balancers; none while the stand-in does not answer."""
        found = self._contents() if healthy else {}
        return {name: found[name] for name in ("machines", "routes", "load_balancers") if name in found}

    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """The status as text."""
        machines = [[each["node_name"], each["state"], each["id"], each["zone"]] for each in status.get("machines", [])]
        routes = [[each["cidr"], each["node_name"] or "to no machine"] for each in status.get("routes", [])]
        balancers = [
            [each["name"], each["type"], each["address"], ", ".join(each["listeners"]) or "no listener"]
            for each in status.get("load_balancers", [])
        ]
        return render_site(
            "Alibaba Cloud (a stand-in)",
            status,
            outputs,
            section("machines", machines),
            section("routes", routes),
            section("load balancers (simulated: they forward nothing)", balancers),
        )

    def _contents(self) -> dict[str, Any]:
        with urllib3.PoolManager(retries=False, timeout=ANSWER_SECONDS) as pool:
            try:
                answer = pool.request("GET", f"{self.endpoint}{CONTENTS_PATH}", headers={TOKEN_HEADER: self.token})
                return dict(answer.json())
            except (urllib3.exceptions.HTTPError, ValueError) as error:
                raise SiteError(f"{self.API_TITLE} does not answer: {error}") from error
