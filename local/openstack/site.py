"""The site of one stack on OpenStack's own services: a project with a cluster that is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3

from local.api_site import ApiSite
from local.cluster_access import admin_kubeconfigs
from local.errors import SiteError
from local.openstack import environment, state
from local.openstack.cluster import CLUSTER_ID, WORKERS, Cluster
from local.openstack.configs import REGION
from local.openstack.contents import KINDS
from local.openstack.folder import cluster_file, site_root
from local.openstack.revision import revision
from local.openstack.site_server import CONTENTS_PATH, TOKEN_HEADER
from local.stack_copy import SiteConfig
from local.stack_file import NAMESPACE
from local.state_folder import StateFolder
from local.status_text import render_site, section
from local.waiting import Tell, to_nobody

ANSWER_SECONDS = 30.0
SIMULATED = (
    "Keystone, Neutron, Octavia and nova-api are the real ones, but there is no hypervisor and no amphora:"
    " load balancers forward nothing"
)


class OpenstackSite(ApiSite):
    """The site of one stack."""

    CLOUD = "OpenStack's own services"
    API_TITLE = "OpenStack"
    API_MODULE = "local.openstack.site_server"

    def __init__(self, state_dir: Path, stack: str, *, registry: Path | None = None) -> None:
        super().__init__(StateFolder(site_root(state_dir, stack)), registry=registry)

    def up(self, tell: Tell = to_nobody) -> None:
        """As every site's; the first time of a user, the services are installed before."""
        try:
            state.ensure(environment.ensure(tell), tell)
        except environment.EnvironmentFailed as error:
            raise SiteError(str(error)) from error
        super().up(tell)

    def revision(self) -> str:
        """The revision of the site's modules."""
        return revision()

    def suspend(self) -> None:
        """Nothing to note: the next start boots the servers that are ACTIVE."""

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a stack's engine: nothing of a cloud of the user's own."""
        return {name: value for name, value in inherited.items() if not name.startswith("OS_")}

    def stack_config(self) -> SiteConfig:
        """Keystone's URL and a credential for it, and the cluster that is there: its IDs, nodes and kubeconfig."""
        kubeconfig = admin_kubeconfigs(self.folder).get(CLUSTER_ID)
        if kubeconfig is None or not cluster_file(self.folder).exists():
            raise SiteError(f"the control plane of cluster {CLUSTER_ID} has not started yet")
        cluster = Cluster(**json.loads(cluster_file(self.folder).read_text()))
        cloud = {
            "authUrl": f"{self.endpoint}/identity/v3",
            "region": REGION,
            "applicationCredentialId": cluster.credential_id,
            "routerId": cluster.router_id,
            "loadBalancers": {"floatingNetworkId": cluster.public_network_id},
        }
        existing = {
            "clusterId": CLUSTER_ID,
            "networkId": cluster.network_id,
            "podCidr": str(self.block.network(0).pods),
            "machines": [*WORKERS],
        }
        return SiteConfig(
            {f"{NAMESPACE}:openstack": cloud, f"{NAMESPACE}:existing": existing},
            # Files of their own, which stay the same: a stack would update what a new one gives it.
            {
                f"{NAMESPACE}:kubeconfig": kubeconfig.read_text(),
                f"{NAMESPACE}:openstackSecret": cluster.credential_secret,
            },
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
        """What stacks left beside the cluster of the project; empty for a stopped site. Raises SiteError."""
        return list(self._contents()["left"]) if self.is_running() else []

    def nothing_left(self) -> str | None:
        """The kinds that `left` looked for; None for a stopped site, where it did not look."""
        return f"the project is as it was; checked: {', '.join(KINDS)}" if self.is_healthy() else None

    def objects(self, *, healthy: bool) -> dict[str, Any]:
        """The project's machines, routes and load balancers; none while the services do not answer."""
        found = self._contents() if healthy else {}
        return {name: found[name] for name in ("machines", "routes", "load_balancers") if name in found}

    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """The status as text."""
        machines = [[each["node_name"], each["state"], each["id"], each["zone"]] for each in status.get("machines", [])]
        routes = [[each["cidr"], each["node_name"] or "to no machine"] for each in status.get("routes", [])]
        balancers = [
            [each["name"], each["state"], each["address"], ", ".join(each["listeners"]) or "no listener"]
            for each in status.get("load_balancers", [])
        ]
        return render_site(
            "OpenStack (its own services, without a hypervisor)",
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
