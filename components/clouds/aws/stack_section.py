"""The section `aws` of a stack file: what a cluster on AWS is made of, and what must fit together."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field
from pydantic.alias_generators import to_camel

from ...config_values import (
    NAMESPACE,
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
    number_of,
    pattern_of,
    url,
)
from ...existing_config import check_id
from ...stack_model import CloudSection, StackConfig
from ..common.user_data import OLDEST_WITH_KUBEADM
from .existing_section import AwsExistingConfig, AwsNetworkConfig
from .settings import (
    DEFAULT_POD_CIDR,
    DEFAULT_SERVICE_CIDR,
    DEFAULT_VPC_CIDR,
    ZONE,
    range_problem,
)

AWS_REGION = re.compile(r"(?!cn-|us-gov-|us-iso|eu-iso)[a-z]{2}(-[a-z]+)+-[0-9]+")
"""Those of the partition `aws`: elsewhere the policies that AWS keeps have other ARNs."""
KUBERNETES_VERSION = re.compile(r"1\.[0-9]{2}")
CCM_VERSION = re.compile(r"v1\.[0-9]{2}\.[0-9]+")
LONGEST_CLUSTER_NAME = {"eks": 31, "ec2": 20}
"""By who runs the control plane. The program's roles and load balancers are called like the cluster, what they are for,
and seven letters that Pulumi adds; AWS gives a role 64 letters and a load balancer 32."""

LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
"""Those that CloudWatch offers."""
LONGEST_NODE_GROUP = 55
"""AWS's limit is 63, and Pulumi adds a hyphen and seven letters."""


class AwsConfig(CloudSection):
    """What a cluster on AWS is made of."""

    region: Annotated[str, matching(AWS_REGION, "a region such as eu-central-1, none of China or GovCloud")] = Field(
        description="The region.", json_schema_extra=pattern_of(AWS_REGION.pattern)
    )
    control_plane: Annotated[str, *choice("eks", "ec2")] = Field(
        default="eks", description="Who runs the control plane: AWS (eks), or pools of role control-plane (ec2)."
    )
    nodes: Annotated[str, *choice("eks", "asg")] = Field(
        default="eks", description="What starts nodes: managed node groups (eks), or auto-scaling groups (asg)."
    )
    kubernetes_version: Annotated[str, matching(KUBERNETES_VERSION, "a minor version such as '1.36'")] = Field(
        description="Kubernetes' minor version, quoted.", json_schema_extra=pattern_of(KUBERNETES_VERSION.pattern)
    )
    network: AwsNetworkConfig | None = Field(
        default=None, description="The existing VPC of a new cluster; the program makes one if not given."
    )
    existing: AwsExistingConfig | None = Field(
        default=None, description="Parts of an existing cluster that cannot be found by its tags."
    )
    vpc_cidr: Cidr | None = Field(default=None, description="The VPC's range, /16 to /20; 10.0.0.0/16 if not given.")
    pod_cidr: Cidr | None = Field(
        default=None, description="The pods' range, unless executors.route is vendor; 100.64.0.0/16 if not given."
    )
    service_cidr: Cidr | None = Field(
        default=None, description="The range of Services' cluster IPs; 172.20.0.0/16 if not given."
    )
    node_subnets: Annotated[str, *choice("private", "public")] = Field(
        default="private", description="The subnets of the nodes: private (behind NAT gateways) or public."
    )
    internal_endpoints: Flag = Field(
        default=False,
        description="Whether the VPC has addresses of its own (interface endpoints) for the APIs that the controllers"
        " call; each costs by the hour and zone.",
    )
    api_sources: list[Cidr] = Field(
        default_factory=list, description="Ranges outside the VPC that may reach the API server; none if empty."
    )
    control_plane_egress: list[Cidr] = Field(
        default_factory=list,
        description="With ec2: ranges that control-plane machines reach besides the cluster and, on port 443,"
        " everything; 0.0.0.0/0 for no limit.",
    )
    log_days: Annotated[int, *number_of(*LOG_DAYS)] | None = Field(
        default=None,
        description="With eks: for how many days CloudWatch keeps the control plane's logs; for ever if not given.",
    )
    audit_days: AuditDays | None = Field(
        default=None,
        description="For how many days a trail of the stack (CloudTrail) keeps the account's calls of AWS's API; no"
        " trail if not given.",
    )
    ccm: Annotated[str, *choice("ours", "vendor")] = Field(
        default="ours",
        description="Which cloud controller manager runs as the daemon: this project's (ours) or AWS's (vendor).",
    )
    serve_nlb_class: Flag = Field(
        default=False,
        description="Whether our daemon serves Services of class service.k8s.aws/nlb: only in a cluster where the AWS"
        " Load Balancer Controller does not run.",
    )
    ccm_image: NotEmpty | None = Field(
        default=None, description="The image of this project's daemon, in a registry that the nodes can reach."
    )
    ccm_version: Annotated[str, matching(CCM_VERSION, "a version such as v1.36.1")] | None = Field(
        default=None, description="The version of AWS's cloud controller manager; required with ccm: vendor."
    )
    endpoint: Annotated[str, AfterValidator(url)] | None = Field(
        default=None,
        description="URL of the simulator that stands in for AWS's APIs; the local site sets it.",
    )
    simulated: Flag = Field(
        default=False, description="Whether the stack runs only against a local site's simulator, never against AWS."
    )

    of_new: ClassVar = (
        "network",
        "nodes",
        "vpc_cidr",
        "pod_cidr",
        "service_cidr",
        "node_subnets",
        "internal_endpoints",
        "api_sources",
        "control_plane_egress",
        "log_days",
        "audit_days",
    )
    of_existing: ClassVar = ("existing",)

    def check_existing(self, stack: StackConfig) -> None:
        if stack.existing is not None:
            check_id("networkId", stack.existing.network_id, "vpc")

    def run_by_vendor(self) -> Collection[Controller]:
        # On EKS all but that of Services: EKS itself, and for volumes its add-on. Elsewhere the EBS CSI driver alone.
        if self.control_plane == "eks" and not self.simulated:
            return [controller for controller in Controller if controller is not Controller.SERVICE]
        return [Controller.VOLUME]

    def runs_our_daemon(self) -> bool:
        return self.ccm_version is None

    def check(self, stack: StackConfig) -> None:
        _check(stack, self)


def _check(config: StackConfig, aws: AwsConfig) -> None:
    if config.executor(Controller.VOLUME) is not Executor.VENDOR:
        why = "on AWS the EBS CSI driver manages volumes; allowed: vendor"
        raise ConfigError(line(f"executors.{Controller.VOLUME}", config.executor(Controller.VOLUME), why))
    for index, pool in enumerate(config.node_pools):
        for place, zone in enumerate(pool.zones):
            if not ZONE.fullmatch(zone) or zone[:-1] != aws.region:
                why = f"allowed: zones of region {aws.region}, such as {aws.region}a"
                raise ConfigError(line(f"nodePools[{index}].zones[{place}]", zone, why))
        if pool.ingress:
            why = "label the pool and name the label in the Services' setting target_node_labels; allowed: false"
            raise ConfigError(line(f"nodePools[{index}].ingress", pool.ingress, why))
    if aws.simulated != (aws.endpoint is not None):
        why = "aws.endpoint is not set: run the stack with `make`, which sets it; allowed without it: false"
        if aws.endpoint is not None:
            why = "aws.endpoint is the URL of a simulator; allowed with it: true"
        raise ConfigError(line("aws.simulated", aws.simulated, why))
    if config.existing is None:
        _check_network(config, aws)
    longest = LONGEST_CLUSTER_NAME[aws.control_plane]
    if len(config.cluster_name) > longest:
        why = f"too long; allowed with controlPlane {aws.control_plane}: at most {longest} characters"
        raise ConfigError(line("clusterName", config.cluster_name, why))
    if aws.control_plane == "eks":
        _check_eks(config, aws)
    else:
        _check_ec2(config, aws)
    if aws.ccm == "vendor" and aws.control_plane == "eks":
        why = "EKS already runs AWS's CCM, and a second one would never get its Lease; allowed: ours"
        raise ConfigError(line("aws.ccm", aws.ccm, why))
    if (aws.ccm == "vendor") != (aws.ccm_version is not None):
        raise ConfigError(line("aws.ccmVersion", aws.ccm_version, "must be set with ccm: vendor, and only then"))
    if aws.ccm == "vendor" and aws.serve_nlb_class:
        why = "AWS's CCM does not support class service.k8s.aws/nlb; allowed with ccm: vendor: false"
        raise ConfigError(line("aws.serveNlbClass", aws.serve_nlb_class, why))
    if aws.ccm == "ours" and not aws.simulated and aws.ccm_image is None:
        why = "nodes on AWS cannot pull the default image; allowed: the image that you pushed (`make image`)"
        raise ConfigError(line("aws.ccmImage", aws.ccm_image, why))


def _check_network(config: StackConfig, aws: AwsConfig) -> None:
    """The ranges of a new cluster, and the network that is there already for it."""
    network = aws.network
    if network is not None:
        if aws.vpc_cidr is None:
            raise ConfigError(f"{NAMESPACE}:aws.vpcCidr is missing: with aws.network it is the range of the VPC")
        if "node_subnets" in aws.model_fields_set:
            why = "aws.network.subnets are the machines' subnets; with aws.network remove the key"
            raise ConfigError(line("aws.nodeSubnets", aws.node_subnets, why))
        if aws.internal_endpoints:
            why = "the program makes nothing in a VPC that is there already; allowed with aws.network: false"
            raise ConfigError(line("aws.internalEndpoints", aws.internal_endpoints, why))
        if config.executor(Controller.ROUTE) is Executor.DAEMON:
            why = "the VPC's route table outlives the cluster and its daemon; allowed with aws.network: pulumi, vendor"
            raise ConfigError(line(f"executors.{Controller.ROUTE}", Executor.DAEMON, why))
        for index, pool in enumerate(config.node_pools):
            for place, zone in enumerate(pool.zones):
                if zone not in network.subnets:
                    why = f"has no subnet; allowed: zones of aws.network.subnets: {', '.join(sorted(network.subnets))}"
                    raise ConfigError(line(f"nodePools[{index}].zones[{place}]", zone, why))
    services = aws.service_cidr or DEFAULT_SERVICE_CIDR
    vpc = aws.vpc_cidr or DEFAULT_VPC_CIDR
    if problem := range_problem(vpc, pod_range(config, aws), services, made=network is None):
        setting, found, why = problem
        raise ConfigError(line(f"aws.{to_camel(setting)}", found, why))


def pod_range(config: StackConfig, aws: AwsConfig) -> str | None:
    """The pods' range, where a route controller leads to it; None: they have addresses of the VPC."""
    if config.executor(Controller.ROUTE) is Executor.VENDOR:
        return None
    return aws.pod_cidr or DEFAULT_POD_CIDR


def _check_eks(config: StackConfig, aws: AwsConfig) -> None:
    if aws.control_plane_egress:
        why = "AWS runs the control plane; allowed with controlPlane eks: none"
        raise ConfigError(line("aws.controlPlaneEgress", aws.control_plane_egress, why))
    for index, pool in enumerate(config.node_pools):
        if pool.role is Role.CONTROL_PLANE:
            why = "AWS runs the control plane; allowed: worker"
            raise ConfigError(line(f"nodePools[{index}].role", pool.role, why))
        group = f"{config.cluster_name}-{pool.name}"
        if aws.nodes == "eks" and len(group) > LONGEST_NODE_GROUP:
            why = f"node group {group!r} has {len(group)} characters; allowed: at most {LONGEST_NODE_GROUP}"
            raise ConfigError(line(f"nodePools[{index}].name", pool.name, why))
    if not aws.simulated and config.executor(Controller.ROUTE) is not Executor.VENDOR:
        why = "pods on EKS have addresses of the VPC, which need no routes; allowed: vendor"
        raise ConfigError(line(f"executors.{Controller.ROUTE}", config.executor(Controller.ROUTE), why))
    if config.existing is not None:
        return
    if not any(pool.count for pool in config.node_pools):
        why = "the cloud controller manager needs a machine; allowed: at least one pool with count 1 or more"
        raise ConfigError(line("nodePools", [pool.name for pool in config.node_pools], why))
    zones = sorted({zone for pool in config.node_pools for zone in pool.zones})
    if len(zones) < 2:
        why = f"all in {zones[0]}, but EKS requires subnets in two zones; allowed: pools with two zones or more"
        raise ConfigError(line("nodePools", [pool.name for pool in config.node_pools], why))


def _check_ec2(config: StackConfig, aws: AwsConfig) -> None:
    if aws.log_days is not None:
        why = "the logs of the control plane stay on its machines; allowed only with controlPlane eks"
        raise ConfigError(line("aws.logDays", aws.log_days, why))
    config.check_own_control_plane()
    for controller, executor in config.executors.items():
        if executor is Executor.VENDOR and controller is not Controller.VOLUME:
            why = "AWS runs no controllers for a control plane on EC2; allowed: daemon (with ccm: vendor, AWS's own)"
            raise ConfigError(line(f"executors.{controller}", executor, why))
    if config.existing is not None:
        return
    if aws.nodes != "asg":
        why = "managed node groups join only EKS clusters; allowed: asg"
        raise ConfigError(line("aws.nodes", aws.nodes, why))
    if int(aws.kubernetes_version.partition(".")[2]) < OLDEST_WITH_KUBEADM:
        why = f"allowed with controlPlane ec2: 1.{OLDEST_WITH_KUBEADM} or newer"
        raise ConfigError(line("aws.kubernetesVersion", aws.kubernetes_version, why))
