"""OpenStack in the shape that the components need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_openstack as openstack

from cloud_controller.clouds.openstack.permissions import DOCTOR, SECURITY_GROUPS

from ... import inputs
from ...config_values import Controller, Executor
from ...stack_model import StackConfig
from ..interface import (
    CloudAdapter,
    ClusterParts,
    ClusterSettings,
    MachineParts,
    ManagerSettings,
    NetworkParts,
    PoolSpec,
)
from . import control_plane, network, nodes
from .access import SECRET, of_new_cluster, rendered
from .settings import checked_settings
from .stack_section import OpenstackConfig


class OpenstackAdapter(CloudAdapter):
    """Makes OpenStack's resources; holds nothing."""

    def providers(self, config: StackConfig) -> list[pulumi.ProviderResource]:
        settings = config.section(OpenstackConfig)
        if config.existing is not None:
            return []
        return [
            openstack.Provider(
                "openstack",
                auth_url=settings.auth_url,
                region=settings.region,
                endpoint_type=settings.interface,
            )
        ]

    def cluster_settings(self, config: StackConfig) -> ClusterSettings:
        settings = config.section(OpenstackConfig)
        balancers = settings.load_balancers
        # Turned off, it still needs the rights by which groups are removed.
        groups = [SECURITY_GROUPS] if balancers is not None and balancers.manage_security_groups is not None else []
        run = config.run_by(Executor.DAEMON)
        quotas = [DOCTOR] if config.doctor_schedule and Controller.SERVICE in run else []
        given: dict[str, Any] = {
            "kubernetes_version": settings.kubernetes_version,
            "image_id": settings.image_id,
            "external_network_id": settings.external_network_id,
            "network_cidr": settings.network_cidr,
            "pod_cidr": settings.pod_cidr,
            "service_cidr": settings.service_cidr,
            "api_sources": settings.api_sources or None,
            "control_plane_egress": settings.control_plane_egress or None,
            "controllers": [*(name.value for name in run), *groups, *quotas],
            "credential_roles": settings.credential_roles or None,
            "credential_expires": settings.credential_expires,
        }
        return {"settings": {key: value for key, value in given.items() if value is not None}}

    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        if not settings:
            why = "is missing; allowed: at least kubernetes_version, image_id, external_network_id"
            raise inputs.WrongInput("settings", why)
        return network.make(name, zones, checked_settings(settings), opts)

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        return control_plane.make(name, network, checked_settings(settings), opts)

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts]:
        if spec.ingress:
            why = "is not supported on OpenStack; label the pool, and name the label in its Services' node_selector"
            raise inputs.WrongInput("ingress", why)
        return nodes.make(name, spec, opts)

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        settings = config.section(OpenstackConfig)
        found: ManagerSettings = {}
        if settings.ccm_image is not None:
            found["image"] = settings.ccm_image
        if settings.credential_expires is not None:
            found["credential_expires"] = settings.credential_expires
        return found

    def cloud_config(
        self,
        config: StackConfig,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        facts: Mapping[str, pulumi.Input[str]],
    ) -> pulumi.Output[str]:
        given = config.section(OpenstackConfig).model_dump(by_alias=True)
        if config.existing is None:
            return pulumi.Output.all(cluster_id=cluster_id, **facts).apply(
                lambda known: rendered(
                    of_new_cluster(given, known["router_id"]),
                    {
                        "application-credential-id": known["credential_id"],
                        "application-credential-secret": known["credential_secret"],
                    },
                    known["cluster_id"],
                )
            )
        secret = pulumi.Output.secret(config.secret(SECRET))
        return pulumi.Output.all(secret, cluster_id).apply(
            lambda values: rendered(given, {"application-credential-secret": values[0]}, values[1])
        )
