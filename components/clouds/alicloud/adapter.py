"""Alibaba Cloud in the shape that the components need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi
import pulumi_alicloud as alicloud

from cloud_controller.clouds.alicloud.annotations import CLASSES, OWN_CLASSES
from cloud_controller.clouds.common.versions import minor
from cloud_controller.load_balancers.readiness_gates import Mode

from ... import inputs
from ...config_values import Controller, Executor
from ...load_balancer_service_args import LoadBalancerServiceArgs
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
from . import ack, control_plane, network, nodes, ram
from .access import rendered
from .ack import PROVIDER_VARIABLE
from .settings import NAME_ON_ACK, AlicloudIdentityArgs, checked_settings
from .stack_section import FEWEST_ZONES, AlicloudConfig, pod_range

CLB_CLASS, NLB_CLASS = "cloud-controller/clb", "cloud-controller/nlb"
OLDEST_WITH_ADMISSION = 36
"""Kubernetes' minor version that serves the admission policy which adds readiness gates (docs/readiness-gates.md)."""


class AlicloudAdapter(CloudAdapter):
    """Makes Alibaba Cloud's resources; holds nothing."""

    def providers(self, config: StackConfig) -> list[pulumi.ProviderResource]:
        return [alicloud.Provider("alicloud", region=config.section(AlicloudConfig).region)]

    def cluster_settings(self, config: StackConfig) -> ClusterSettings:
        settings = config.section(AlicloudConfig)
        given: dict[str, Any] = {
            "region": settings.region,
            "control_plane": settings.control_plane,
            "kubernetes_version": settings.kubernetes_version,
            "vpc_cidr": settings.vpc_cidr,
            "pod_cidr": pod_range(settings),
            "service_cidr": settings.service_cidr,
            "public_api": settings.public_api or None,
            "api_sources": settings.api_sources or None,
            "control_plane_egress": settings.control_plane_egress or None,
            "log_days": settings.log_days,
            "audit_days": settings.audit_days,
            "image": settings.image,
            "kms_instance": settings.kms_instance,
            "kms_key": settings.kms_key,
            "autoscaling": settings.autoscaling or None,
            "controllers": [name.value for name in config.run_by(Executor.DAEMON)],
            "doctor": bool(config.doctor_schedule) or None,
        }
        return {"settings": {key: value for key, value in given.items() if value is not None}}

    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        if not settings:
            why = "is missing; allowed: at least region, control_plane, kubernetes_version"
            raise inputs.WrongInput("settings", why)
        given = checked_settings(settings)
        if given["control_plane"] == "ecs":
            for key in ("image", "kms_instance", "kms_key"):
                if key not in given:
                    raise inputs.WrongInput(f"settings.{key}", "is missing; required with control_plane ecs")
        return network.make(name, zones, given, opts)

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        given = checked_settings(settings)
        if given["control_plane"] == "ack":
            return ack.make(name, network, given, opts)
        return control_plane.make(name, network, given, opts)

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts] | None:
        if spec.ingress:
            why = "is not supported on Alibaba Cloud; label the pool, and name the label in its Services' backend_label"
            raise inputs.WrongInput("ingress", why)
        return nodes.make(name, spec, opts)

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        settings = config.section(AlicloudConfig)
        found: ManagerSettings = {}
        if settings.control_plane == "ack":
            # ACK's own CCM takes every Service without a class.
            found["arguments"] = ["--require-load-balancer-class"]
            # Its ServiceAccount, its roles and its Lease have the usual names.
            found["name"] = found["lease"] = NAME_ON_ACK
        served = config.executor(Controller.SERVICE) is Executor.DAEMON
        too_old = (minor(settings.kubernetes_version) or 0) < OLDEST_WITH_ADMISSION
        if served and (too_old or settings.control_plane == "ack"):
            # On ACK the policy would also add gates to pods behind Services of class alibabacloud.com/nlb, which ACK's
            # own CCM serves: it would never open them.
            found["readiness_gates"] = Mode.BY_HAND.value
        if settings.ccm_image is not None:
            found["image"] = settings.ccm_image
        if role is not None:
            found["role"] = role
        existing = settings.existing
        if existing is not None and existing.oidc_provider and existing.oidc_issuer:
            found["environment"] = {PROVIDER_VARIABLE: existing.oidc_provider}
            found["identity"] = {
                "oidc_provider": existing.oidc_provider,
                "oidc_issuer": existing.oidc_issuer,
                "cluster_name": config.cluster_name,
                "region": settings.region,
                "controllers": [name.value for name in config.run_by(Executor.DAEMON)],
            }
        return found

    def manager_role(
        self, identity: Mapping[str, Any], account: str, opts: pulumi.ResourceOptions, *, reads: bool = False
    ) -> pulumi.Output[str]:
        given = cast("AlicloudIdentityArgs", identity)
        provider = ram.OidcProvider(given["oidc_provider"], given["oidc_issuer"])
        name, region, controllers = given["cluster_name"], given["region"], given["controllers"]
        return ram.role_of_account(name, provider, account, region, controllers, opts, reads=reads)

    def served_classes(self, config: StackConfig) -> Sequence[str]:
        # The others are served on ACK by its own CCM, on ECS by ours.
        return sorted({*super().served_classes(config), *(CLASSES - OWN_CLASSES)})

    def balanced(
        self, config: StackConfig, args: LoadBalancerServiceArgs, subnet_ids: Mapping[str, pulumi.Output[str]]
    ) -> LoadBalancerServiceArgs:
        if config.executor(Controller.SERVICE) is not Executor.DAEMON:
            # ACK's own CCM does not limit the clients of a CLB by source ranges.
            return {**args, "settings": {"address_type": "intranet"}}
        if len(subnet_ids) < FEWEST_ZONES:
            return {**args, "load_balancer_class": CLB_CLASS}
        # Unlike a CLB, it admits clients by source ranges.
        zones = [pulumi.Output.concat(zone, ":", id_) for zone, id_ in sorted(subnet_ids.items())]
        # With the clients' addresses, packets would need rules of the nodes' security group, which has none for them.
        settings = {"zone_maps": pulumi.Output.all(*zones), "preserve_client_ip": "off"}
        return {**args, "load_balancer_class": NLB_CLASS, "settings": settings}

    def cloud_config(
        self,
        config: StackConfig,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        facts: Mapping[str, pulumi.Input[str]],
    ) -> pulumi.Output[str]:
        settings = config.section(AlicloudConfig)
        given = settings.model_dump(by_alias=True)
        # The CCM runs in the VPC; the program, which has a config of its own, runs anywhere.
        return pulumi.Output.all(cluster_id, network_id).apply(
            lambda ids: rendered(given, ids[0], ids[1], network="vpc")
        )
