"""The site of one stack on OpenStack's own services: a project with a cluster that is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from local.api_site import SiteConfig
from local.cluster_site import ClusterSite
from local.errors import SiteError
from local.openstack import environment, state
from local.openstack.cluster import CLUSTER_ID, WORKERS, Cluster
from local.openstack.configs import REGION
from local.openstack.contents import KINDS
from local.openstack.folder import cluster_file, site_root
from local.openstack.revision import revision
from local.stack_file import NAMESPACE
from local.state_folder import StateFolder
from local.waiting import Tell, to_nobody


class OpenstackSite(ClusterSite):
    """The site of one stack."""

    CLOUD = "OpenStack"
    API_TITLE = "OpenStack"
    API_MODULE = "local.openstack.site_server"
    CLUSTER_ID = CLUSTER_ID
    KINDS = KINDS
    EMPTY = "the project is as it was"
    STATUS_TITLE = "OpenStack (its own services, without a hypervisor)"
    BALANCER_COLUMN = "state"
    SIMULATED = (
        "Keystone, Neutron, Octavia and nova-api are the real ones, but there is no hypervisor and no amphora:"
        " load balancers forward nothing"
    )

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

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a stack's runs: nothing of a cloud of the user's own."""
        return {name: value for name, value in inherited.items() if not name.startswith("OS_")}

    def stack_config(self) -> SiteConfig:
        """Keystone's URL and a credential for it, and the cluster that is there: its IDs, nodes and kubeconfig."""
        # The cluster's file is written before its control plane starts.
        kubeconfig = self.cluster_kubeconfig()
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
            {
                f"{NAMESPACE}:kubeconfig": kubeconfig,
                f"{NAMESPACE}:openstackSecret": cluster.credential_secret,
            },
        )
