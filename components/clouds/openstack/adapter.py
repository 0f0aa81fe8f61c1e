"""OpenStack in the shape that the components need: the controllers of clusters that are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Never

import pulumi

from ... import inputs
from ...stack_model import StackConfig
from ..interface import CloudAdapter, ClusterParts, MachineParts, ManagerSettings, NetworkParts, PoolSpec
from .access import SECRET, rendered
from .stack_section import OpenstackConfig


class OpenstackAdapter(CloudAdapter):
    """Makes no resources of OpenStack's; holds nothing."""

    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        _refuse()

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        _refuse()

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts]:
        _refuse()

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        settings = config.section(OpenstackConfig)
        found: ManagerSettings = {}
        if settings.ccm_image is not None:
            found["image"] = settings.ccm_image
        if settings.credential_expires is not None:
            found["credential_expires"] = settings.credential_expires
        return found

    def cloud_config(
        self, config: StackConfig, cluster_id: pulumi.Input[str], network_id: pulumi.Input[str]
    ) -> pulumi.Output[str]:
        given = config.section(OpenstackConfig).model_dump(by_alias=True)
        secret = pulumi.Output.secret(config.secret(SECRET))
        return pulumi.Output.all(secret, cluster_id).apply(lambda values: rendered(given, values[0], values[1]))


def _refuse() -> Never:
    raise inputs.WrongInput("cloud", "openstack has no components for new clusters; run in one that exists")
