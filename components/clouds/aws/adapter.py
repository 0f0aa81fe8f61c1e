"""AWS in the shape that the components need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pulumi
import pulumi_aws as aws

from cloud_controller.clouds.aws.annotations import AWS_LBC_CLASS
from cloud_controller.clouds.aws.config import Config as CloudConfig
from cloud_controller.clouds.aws.config import render
from cloud_controller.clouds.aws.versions import judge
from cloud_controller.clouds.common.versions import Verdict

from ... import inputs
from ...config_values import Executor
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
    VendorManager,
)
from . import control_plane, eks, iam, network, nodes, vendor_manager
from .access import overrides
from .existing_section import AwsExistingConfig
from .settings import AwsIdentityArgs, checked_settings
from .stack_section import AwsConfig, pod_range

ENDPOINTS = ("autoscaling", "ec2", "eks", "elb", "elbv2", "iam", "ssm", "sts")
"""The services that a simulator replaces, by the provider's names."""
NLB_CLASS = "cloud-controller/nlb"
LEASE_ON_EKS = "cloud-controller"
"""EKS's control plane runs upstream's CCM, which holds the usual Lease: ours would wait for it for ever."""


class AwsAdapter(CloudAdapter):
    """Makes AWS's resources; holds nothing."""

    def providers(self, config: StackConfig) -> list[pulumi.ProviderResource]:
        settings = config.section(AwsConfig)
        if settings.endpoint is None:
            return [aws.Provider("aws", region=settings.region)]
        keys = pulumi.Config("aws")
        return [
            aws.Provider(
                "aws",
                region=settings.region,
                access_key=keys.get_secret("accessKey"),
                secret_key=keys.get_secret("secretKey"),
                endpoints=[aws.ProviderEndpointArgs(**dict.fromkeys(ENDPOINTS, settings.endpoint))],
                skip_credentials_validation=True,
                skip_metadata_api_check=True,
                skip_region_validation=True,
                skip_requesting_account_id=True,
            )
        ]

    def cluster_settings(self, config: StackConfig) -> ClusterSettings:
        settings = config.section(AwsConfig)
        given: dict[str, Any] = {
            "control_plane": settings.control_plane,
            "nodes": settings.nodes,
            "kubernetes_version": settings.kubernetes_version,
            "network": settings.network.model_dump() if settings.network else None,
            "vpc_cidr": settings.vpc_cidr,
            "pod_cidr": pod_range(config, settings),
            "service_cidr": settings.service_cidr,
            "node_subnets": None if settings.network else settings.node_subnets,
            "internal_endpoints": settings.internal_endpoints or None,
            "api_sources": settings.api_sources,
            "control_plane_egress": settings.control_plane_egress or None,
            "log_days": settings.log_days,
            "audit_days": settings.audit_days,
            "ccm": settings.ccm,
            "controllers": [name.value for name in config.run_by(Executor.DAEMON)],
            "doctor": bool(config.doctor_schedule) or None,
        }
        return {"settings": {key: value for key, value in given.items() if value is not None}}

    def network(
        self, name: str, zones: Sequence[str], settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> NetworkParts:
        if not settings:
            raise inputs.WrongInput(
                "settings",
                "is missing; allowed: at least control_plane, nodes, kubernetes_version",
            )
        return network.make(name, zones, checked_settings(settings), opts)

    def cluster(
        self, name: str, network: NetworkParts, settings: Mapping[str, Any], opts: pulumi.ResourceOptions
    ) -> ClusterParts:
        given = checked_settings(settings)
        if given["control_plane"] == "eks":
            return eks.make(name, network, given, opts)
        return control_plane.make(name, network, given, opts)

    def pool(self, name: str, spec: PoolSpec, opts: pulumi.ResourceOptions) -> list[MachineParts] | None:
        if spec.ingress:
            why = "is not supported on AWS; label the pool, and name the label in its Services' target_node_labels"
            raise inputs.WrongInput("ingress", why)
        nodes.make(name, spec, opts)
        return None

    def manager_settings(self, config: StackConfig, role: pulumi.Output[str] | None) -> ManagerSettings:
        settings = config.section(AwsConfig)
        found: ManagerSettings = {"environment": {"AWS_REGION": settings.region}}
        if settings.endpoint is not None:
            # For the SDK's own call for credentials, which the cloud config does not cover.
            found["environment"] = {"AWS_REGION": settings.region, "AWS_ENDPOINT_URL": settings.endpoint}
        if settings.control_plane == "eks" and not settings.simulated:
            # EKS itself runs upstream's service controller, which takes every Service without a class.
            found["arguments"] = ["--require-load-balancer-class"]
            found["lease"] = LEASE_ON_EKS
        if settings.ccm_version is not None:
            found["vendor_version"] = settings.ccm_version
            _warn(judge(settings.ccm_version, settings.kubernetes_version))
        if settings.ccm_image is not None:
            found["image"] = settings.ccm_image
        if role is not None:
            found["role"] = role
        if config.existing is not None and settings.existing is not None and settings.existing.oidc_provider:
            found["identity"] = {
                "oidc_provider": settings.existing.oidc_provider,
                "cluster_id": config.existing.cluster_id,
                "cluster_name": config.cluster_name,
                "controllers": [name.value for name in config.run_by(Executor.DAEMON)],
                "ccm": settings.ccm,
            }
        return found

    def manager_role(
        self, identity: Mapping[str, Any], account: str, opts: pulumi.ResourceOptions, *, reads: bool = False
    ) -> pulumi.Output[str]:
        return iam.existing_cluster_role(cast("AwsIdentityArgs", identity), account, opts, reads=reads)

    def vendor_manager(
        self,
        version: str,
        controllers: Sequence[str],
        *,
        cluster_name: pulumi.Input[str],
        cluster_cidr: pulumi.Input[str],
        config_file: str,
    ) -> VendorManager:
        return vendor_manager.make(
            version, controllers, cluster_name=cluster_name, cluster_cidr=cluster_cidr, config_file=config_file
        )

    def served_classes(self, config: StackConfig) -> Sequence[str]:
        more = [AWS_LBC_CLASS] if config.section(AwsConfig).serve_nlb_class else []
        return [*super().served_classes(config), *more]

    def balanced(
        self, config: StackConfig, args: LoadBalancerServiceArgs, subnet_ids: Mapping[str, pulumi.Output[str]]
    ) -> LoadBalancerServiceArgs:
        if config.section(AwsConfig).control_plane == "eks":
            # Also when it is off: AWS keeps an attribute that is no longer set, and refuses to delete while it is on.
            attributes = [f"deletion_protection.enabled={str(bool(config.protect)).lower()}"]
            return {**args, "load_balancer_class": NLB_CLASS, "settings": {"attributes": attributes}}
        return {**args, "settings": {"type": "nlb"}}

    def forwards(self, config: StackConfig) -> bool:
        return not config.section(AwsConfig).simulated

    def cloud_config(
        self,
        config: StackConfig,
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        facts: Mapping[str, pulumi.Input[str]],
    ) -> pulumi.Output[str]:
        settings = config.section(AwsConfig)
        existing = settings.existing or AwsExistingConfig()
        return pulumi.Output.all(cluster_id, network_id).apply(
            lambda ids: render(
                CloudConfig(
                    cluster_id=ids[0],
                    vpc_id=ids[1],
                    subnet_id=existing.subnet_id,
                    route_table_id=existing.route_table_id,
                    elb_security_group=existing.security_group_id,
                    region=settings.region,
                    serve_nlb_class=settings.serve_nlb_class,
                    overrides=overrides(settings.endpoint, settings.region),
                )
            )
        )


def _warn(verdict: Verdict) -> None:
    if verdict.kind != "fits":
        pulumi.log.warn(f"cloud-controller:aws.ccmVersion: {verdict.why}")
