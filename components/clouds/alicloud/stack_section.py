"""The section `alicloud` of a stack file: what a cluster on Alibaba Cloud is made of, and what must fit together."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field
from pydantic.alias_generators import to_camel

from ...config_values import (
    AuditDays,
    Cidr,
    ConfigError,
    Controller,
    Executor,
    Flag,
    NotEmpty,
    Role,
    choice,
    line,
    matching,
    pattern_of,
    url,
)
from ...existing_config import check_id
from ...stack_model import CloudSection, StackConfig
from ..common.user_data import OLDEST_WITH_KUBEADM
from .existing_section import AlicloudExistingConfig
from .settings import (
    AUDIT_PREFIX,
    DEFAULT_POD_CIDR,
    DEFAULT_SERVICE_CIDR,
    DEFAULT_VPC_CIDR,
    LONGEST_TRAIL,
    REGION,
    is_zone,
    range_problem,
)

KUBERNETES_VERSION = re.compile(r"1\.[0-9]{2}(\.[0-9]+-aliyun\.[0-9]+)?")
ACK_VERSION = re.compile(r"1\.[0-9]{2}\.[0-9]+-aliyun\.[0-9]+")
LONGEST_CLUSTER_NAME = {"ack": 38, "ecs": 30}
"""By who runs the control plane: roles and secrets in KMS are called like the cluster and what they are for, and both
have 64 letters."""
FEWEST_ZONES = 2
"""Of an NLB."""
OF_ECS = ("image", "kms_instance", "kms_key")


class AlicloudConfig(CloudSection):
    """What a cluster on Alibaba Cloud is made of."""

    region: Annotated[str, matching(REGION, "a region such as cn-hangzhou")] = Field(
        description="The region.", json_schema_extra=pattern_of(REGION.pattern)
    )
    control_plane: Annotated[str, *choice("ack", "ecs")] = Field(
        default="ack", description="Who runs the control plane: Alibaba Cloud (ack), or a pool of its role (ecs)."
    )
    kubernetes_version: Annotated[
        str, matching(KUBERNETES_VERSION, "a version such as '1.34.1-aliyun.1' (ack) or '1.36' (ecs)")
    ] = Field(
        description="Kubernetes' version, quoted: ACK's full version, or with ecs the minor version.",
        json_schema_extra=pattern_of(KUBERNETES_VERSION.pattern),
    )
    vpc_cidr: Cidr | None = Field(default=None, description="The VPC's range, /10 to /16; 10.0.0.0/16 if not given.")
    pod_cidr: Cidr | None = Field(
        default=None, description="The pods' range, where pods have routes; 172.20.0.0/16 if not given."
    )
    service_cidr: Cidr | None = Field(
        default=None, description="The range of Services' cluster IPs; 172.21.0.0/20 if not given."
    )
    public_api: Flag = Field(
        default=False, description="With ack: whether the API server has a public address too, for everyone."
    )
    api_sources: list[Cidr] = Field(
        default_factory=list,
        description="With ecs: ranges of networks joined to the VPC that may reach the API server; none if empty.",
    )
    autoscaling: dict[str, Annotated[int, Field(strict=True, ge=1, le=1000)]] = Field(
        default_factory=dict,
        description="With ack: by pool, the most machines that the autoscaler may make; count is the fewest.",
    )
    control_plane_egress: list[Cidr] = Field(
        default_factory=list,
        description="With ecs: ranges that control-plane machines reach besides the VPC and, on port 443, everything;"
        " 0.0.0.0/0 for no limit.",
    )
    log_days: Annotated[int, Field(strict=True, ge=1, le=3000)] | None = Field(
        default=None,
        description="With ack: for how many days SLS keeps the control plane's logs; 30 if not given.",
    )
    audit_days: AuditDays | None = Field(
        default=None,
        description="For how many days a trail of the stack (ActionTrail) keeps the account's calls of the cloud's API;"
        " no trail if not given.",
    )
    image: NotEmpty | None = Field(
        default=None, description="With ecs: the id of the machines' image, Alibaba Cloud Linux 3."
    )
    kms_instance: NotEmpty | None = Field(
        default=None, description="With ecs: the KMS instance for the secrets that machines exchange."
    )
    kms_key: NotEmpty | None = Field(default=None, description="With ecs: the key of that instance for them.")
    existing: AlicloudExistingConfig | None = Field(
        default=None, description="Parts of an existing cluster: its OIDC provider, vSwitch and route tables."
    )
    ccm_image: NotEmpty | None = Field(
        default=None, description="The image of this project's daemon, in a registry that the nodes can reach."
    )
    endpoint: Annotated[str, AfterValidator(url)] | None = Field(
        default=None,
        description="URL of the stand-in for Alibaba Cloud's APIs; the local site sets it.",
    )
    simulated: Flag = Field(
        default=False, description="Whether the stack runs only against a local site's stand-in, never in an account."
    )

    def run_by_vendor(self) -> Collection[Controller]:
        # ACK runs its own CCM and its own storage driver; ours may run beside it for its own classes of Services.
        return tuple(Controller) if self.control_plane == "ack" else (Controller.VOLUME,)

    of_existing: ClassVar = ("existing",)
    of_new: ClassVar = (
        "vpc_cidr",
        "pod_cidr",
        "service_cidr",
        "public_api",
        "api_sources",
        "autoscaling",
        "control_plane_egress",
        "log_days",
        "audit_days",
        *OF_ECS,
    )

    def check(self, stack: StackConfig) -> None:
        _check(stack, self)

    def check_existing(self, stack: StackConfig) -> None:
        if stack.existing is not None:
            check_id("networkId", stack.existing.network_id, "vpc")
        if self.existing is not None:
            self.existing.check()


def pod_range(alicloud: AlicloudConfig) -> str | None:
    """The pods' range, where routes lead to it; None: they have addresses of the VPC (Terway)."""
    if alicloud.control_plane == "ack":
        return alicloud.pod_cidr
    return alicloud.pod_cidr or DEFAULT_POD_CIDR


def _check(config: StackConfig, alicloud: AlicloudConfig) -> None:
    _check_executors(config, alicloud)
    for index, pool in enumerate(config.node_pools):
        for place, zone in enumerate(pool.zones):
            if not is_zone(alicloud.region, zone):
                why = f"allowed: zones of region {alicloud.region}, such as {_example(alicloud.region)}"
                raise ConfigError(line(f"nodePools[{index}].zones[{place}]", zone, why))
        if pool.ingress:
            why = "label the pool and name the label in the Services' setting backend_label; allowed: false"
            raise ConfigError(line(f"nodePools[{index}].ingress", pool.ingress, why))
    longest = LONGEST_CLUSTER_NAME[alicloud.control_plane]
    if len(config.cluster_name) > longest:
        why = f"too long; allowed with controlPlane {alicloud.control_plane}: at most {longest} characters"
        raise ConfigError(line("clusterName", config.cluster_name, why))
    if alicloud.simulated != (alicloud.endpoint is not None):
        why = "alicloud.endpoint is not set: run the stack with `make`, which sets it; allowed without it: false"
        if alicloud.endpoint is not None:
            why = "alicloud.endpoint is the URL of a stand-in; allowed with it: true"
        raise ConfigError(line("alicloud.simulated", alicloud.simulated, why))
    if alicloud.simulated and config.existing is None:
        why = "a site has a cluster already; allowed: false, or `cluster: existing`"
        raise ConfigError(line("alicloud.simulated", alicloud.simulated, why))
    if config.run_by(Executor.DAEMON) and alicloud.ccm_image is None and not alicloud.simulated:
        why = "nodes cannot pull the default image; allowed: the image that you pushed (`make image`)"
        raise ConfigError(line("alicloud.ccmImage", alicloud.ccm_image, why))
    if config.source_ranges and config.executor(Controller.SERVICE) is Executor.VENDOR:
        why = "ACK's CCM does not limit a CLB's clients by them; allowed with executors.service vendor: none, for then"
        raise ConfigError(line("sourceRanges", config.source_ranges, f"{why} the load balancers are internal"))
    if config.source_ranges and config.executor(Controller.SERVICE) is Executor.DAEMON:
        zones = {zone for pool in config.node_pools for zone in pool.zones}
        if config.existing is not None or len(zones) < FEWEST_ZONES:
            why = "a CLB does not limit its clients by them; allowed with `cluster: existing` or in one zone: none"
            raise ConfigError(
                line("sourceRanges", config.source_ranges, f"{why}, for then the load balancers are CLBs")
            )
    _check_version(alicloud)
    if config.existing is None:
        _check_new(config, alicloud)


def _check_version(alicloud: AlicloudConfig) -> None:
    version = alicloud.kubernetes_version
    if alicloud.control_plane == "ack" and not ACK_VERSION.fullmatch(version):
        why = "allowed with controlPlane ack: ACK's full version, such as 1.34.1-aliyun.1"
        raise ConfigError(line("alicloud.kubernetesVersion", version, why))
    if alicloud.control_plane == "ecs" and ("-" in version or _minor(version) < OLDEST_WITH_KUBEADM):
        why = f"allowed with controlPlane ecs: a minor version, 1.{OLDEST_WITH_KUBEADM} or newer"
        raise ConfigError(line("alicloud.kubernetesVersion", version, why))


def _check_new(config: StackConfig, alicloud: AlicloudConfig) -> None:
    longest = LONGEST_TRAIL - len(AUDIT_PREFIX)
    if alicloud.audit_days is not None and len(config.cluster_name) > longest:
        why = f"too long; allowed with alicloud.auditDays: at most {longest} characters"
        raise ConfigError(line("clusterName", config.cluster_name, why))
    vpc, services = alicloud.vpc_cidr or DEFAULT_VPC_CIDR, alicloud.service_cidr or DEFAULT_SERVICE_CIDR
    if problem := range_problem(vpc, pod_range(alicloud), services):
        setting, found, why = problem
        raise ConfigError(line(f"alicloud.{to_camel(setting)}", found, why))
    if alicloud.control_plane == "ack":
        _check_ack(config, alicloud)
    else:
        _check_ecs(config, alicloud)


def _example(region: str) -> str:
    return f"{region}a" if region[-1].isdigit() else f"{region}-a"


def _check_executors(config: StackConfig, alicloud: AlicloudConfig) -> None:
    vendors = alicloud.run_by_vendor()
    for controller in Controller:
        executor = config.executor(controller)
        if alicloud.control_plane == "ack" and controller is not Controller.SERVICE:
            if executor is not Executor.VENDOR:
                why = "ACK runs it, and two would undo each other's work; allowed: vendor"
                raise ConfigError(line(f"executors.{controller}", executor, why))
        elif controller in vendors and controller is not Controller.SERVICE and executor is not Executor.VENDOR:
            why = "on Alibaba Cloud its CSI driver manages volumes; allowed: vendor"
            raise ConfigError(line(f"executors.{controller}", executor, why))
        elif controller not in vendors and executor is Executor.VENDOR:
            why = "Alibaba Cloud runs no controllers for a control plane on ECS; allowed: daemon"
            raise ConfigError(line(f"executors.{controller}", executor, why))


def _check_ack(config: StackConfig, alicloud: AlicloudConfig) -> None:
    for index, pool in enumerate(config.node_pools):
        if pool.role is Role.CONTROL_PLANE:
            raise ConfigError(
                line(f"nodePools[{index}].role", pool.role, "ACK runs the control plane; allowed: worker")
            )
    counts = {pool.name: pool.count for pool in config.node_pools}
    for name, most in alicloud.autoscaling.items():
        if name not in counts:
            raise ConfigError(line(f"alicloud.autoscaling.{name}", most, f"no such pool; allowed: {', '.join(counts)}"))
        if most <= counts[name]:
            why = f"allowed: more than the pool's count, {counts[name]}"
            raise ConfigError(line(f"alicloud.autoscaling.{name}", most, why))
    for key in OF_ECS:
        if value := getattr(alicloud, key):
            raise ConfigError(line(f"alicloud.{to_camel(key)}", value, "allowed only with controlPlane ecs"))
    if alicloud.control_plane_egress:
        why = "ACK runs the control plane; allowed with controlPlane ack: none"
        raise ConfigError(line("alicloud.controlPlaneEgress", alicloud.control_plane_egress, why))
    if alicloud.api_sources:
        why = "an ACK cluster's API server cannot be limited to them; allowed with controlPlane ack: none"
        raise ConfigError(line("alicloud.apiSources", alicloud.api_sources, why))


def _check_ecs(config: StackConfig, alicloud: AlicloudConfig) -> None:
    config.check_own_control_plane()
    for key in OF_ECS:
        if not getattr(alicloud, key):
            raise ConfigError(line(f"alicloud.{to_camel(key)}", None, "must be set with controlPlane ecs"))
    only_ack = {"publicApi": alicloud.public_api, "autoscaling": alicloud.autoscaling, "logDays": alicloud.log_days}
    for key, given in only_ack.items():
        if given:
            raise ConfigError(line(f"alicloud.{key}", given, "allowed only with controlPlane ack"))
    zones = sorted({zone for pool in config.node_pools for zone in pool.zones})
    if len(zones) < 2:
        why = f"all in {zones[0]}, but the NLB of the API requires two zones; allowed: pools with two zones or more"
        raise ConfigError(line("nodePools", [pool.name for pool in config.node_pools], why))


def _minor(version: str) -> int:
    return int(version.split(".")[1])
