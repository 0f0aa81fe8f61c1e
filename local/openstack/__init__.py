"""The real Keystone, Neutron, Octavia and nova-api on one machine: for tests, and for sites of stacks.

They run unchanged, on SQLite, in an environment of their own that is no part of the project's. Nothing moves packets:
there is no hypervisor, no agent and no amphora. A site has, beside them, a cluster that is there already: a real
control plane and real machines. Resources of OpenStack's Pulumi package are recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.clouds import LocalCloud

if TYPE_CHECKING:
    from local.openstack.site import OpenstackSite
    from local.plugins.provider import Provider
    from local.plugins.values import PropertyMap


def _site(state: Path, stack: str, section: Mapping[str, Any]) -> OpenstackSite:
    from local.openstack.site import OpenstackSite

    del section
    return OpenstackSite(state, stack)


def _has_site(state: Path, stack: str) -> bool:
    from local.openstack.folder import site_root

    return site_root(state, stack).exists()


def _provider(config: PropertyMap) -> Provider:
    from local.openstack.recorded import recorder

    return recorder(config)


_ID = "00000000-0000-4000-8000-000000000000"

CLOUD = LocalCloud(
    name="openstack",
    site=_site,
    requires={"simulated": True},
    has_site=_has_site,
    placeholders={
        "cloud-controller:openstack": {
            "authUrl": "https://keystone.invalid/v3",
            "applicationCredentialId": "0" * 32,
            "routerId": _ID,
        },
        "cloud-controller:existing": {"clusterId": "site", "networkId": _ID, "podCidr": "10.0.0.0/16"},
        "cloud-controller:kubeconfig": {"secure": ""},
        "cloud-controller:openstackSecret": {"secure": ""},
    },
    providers={"openstack": _provider},
)
