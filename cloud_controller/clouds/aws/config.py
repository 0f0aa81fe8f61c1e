"""What AWS's cloud config holds: the file that upstream's AWS controller reads too, in gcfg's form of INI.

[Global]
KubernetesClusterID = prod-1       # required: what tags and an EKS cluster's name carry
Region = eu-central-1              # default: the environment's, then the metadata service's
VPC = vpc-0123456789abcdef0        # default: that of the subnets with the cluster's tag
ServeNLBClass = true               # ours alone: serve spec.loadBalancerClass service.k8s.aws/nlb; default: false

[ServiceOverride "ec2"]            # another endpoint for one service
Service = ec2
Region = eu-central-1
URL = https://ec2.example.com
SigningRegion = eu-central-1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from cloud_controller.clouds.common.gcfg import Section, did_you_mean, is_url, read, written, wrong

HealthProbeMode = Literal["ServiceNodePort", "Shared"]
IpFamily = Literal["ipv4", "ipv6"]

_GLOBAL = (
    "Zone",
    "Region",
    "VPC",
    "SubnetID",
    "RouteTableID",
    "RoleARN",
    "SourceARN",
    "KubernetesClusterTag",
    "KubernetesClusterID",
    "DisableSecurityGroupIngress",
    "ElbSecurityGroup",
    "NLBSecurityGroupMode",
    "NodeIPFamilies",
    "ServeNLBClass",
    "ClusterServiceLoadBalancerHealthProbeMode",
    "ClusterServiceSharedLoadBalancerHealthProbePort",
    "ClusterServiceSharedLoadBalancerHealthProbePath",
    "SupportedTopologyInstanceTypePattern",
)
_OVERRIDE = "ServiceOverride"
_KEYS = {
    "Global": _GLOBAL,
    _OVERRIDE: ("Service", "Region", "URL", "SigningRegion", "SigningMethod", "SigningName"),
}
_REPEATABLE = "NodeIPFamilies"

_SERVICES: Mapping[str, tuple[str, ...]] = {
    # One endpoint serves several services; these are the SDKs' names.
    "elasticloadbalancing": ("elb", "elbv2"),
    "elastic load balancing": ("elb",),
    "elastic load balancing v2": ("elbv2",),
    "service quotas": ("service-quotas",),
    "servicequotas": ("service-quotas",),
}
SERVICES = ("ec2", "elb", "elbv2", "eks", "sts", "service-quotas")
"""The services that this cloud calls, by boto3's names."""
# Upstream's controller supports overrides of these services too, so a config that names them is valid.
_NOT_CALLED = ("autoscaling", "ec2imds", "imds", "kms", "s3")

_CLUSTER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CLUSTER_PREFIX = "kubernetes.io/cluster/"
"""The prefix of the keys of clusters' tags."""
_REGION_OF_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+-\d+)[a-z-].*")

TOPOLOGY_TYPES = r"^((hpc|trn|p)[0-9]+[a-z]*(-[a-z0-9]+)?|g[67]e)\."
"""Instance types that have an instance topology (EC2's page "Instance topology", prerequisites)."""


@dataclass(frozen=True, slots=True)
class ServiceOverride:
    """An endpoint that replaces AWS's own for one service. `service`: boto3's name of it."""

    service: str
    url: str
    region: str
    signing_region: str
    signing_name: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """A valid cloud config. None: determined when needed."""

    cluster_id: str
    region: str | None = None
    vpc_id: str | None = None
    subnet_id: str | None = None
    """The subnet of load balancers if no other source names one."""
    route_table_id: str | None = None
    role_arn: str | None = None
    source_arn: str | None = None
    """The resource on whose behalf the role is assumed, against the confused-deputy problem."""
    disable_security_group_ingress: bool = False
    """Whether the controller adds no rules to the nodes' security groups: the administrator admits the traffic."""
    elb_security_group: str | None = None
    """The security group of every load balancer, instead of one for each."""
    node_ip_families: tuple[IpFamily, ...] = ("ipv4",)
    """The address families of nodes, in this order."""
    health_probe_mode: HealthProbeMode = "ServiceNodePort"
    """`Shared`: by default, health checks test kube-proxy's health instead of the node port."""
    health_probe_port: int = 10256
    health_probe_path: str = "/healthz"
    topology_types: str = TOPOLOGY_TYPES
    """A regular expression that matches the instance types whose topology is read."""
    serve_nlb_class: bool = False
    """Whether to serve Services of the AWS Load Balancer Controller's class, for clusters where it does not run."""
    overrides: tuple[ServiceOverride, ...] = field(default=())

    @property
    def cluster_tag(self) -> str:
        """The key of the tag on all the cluster's resources (`owned` or `shared`)."""
        return f"{CLUSTER_PREFIX}{self.cluster_id}"

    def override(self, service: str, region: str) -> ServiceOverride | None:
        """The override of this service in this region."""
        return next((each for each in self.overrides if (each.service, each.region) == (service, region)), None)


def parse(text: str) -> Config:
    """Read a cloud config. Raises InvalidConfiguration that names section and key, or the line, and no value."""
    sections = read(text, _KEYS, named={_OVERRIDE}, repeated={_REPEATABLE})
    (one,) = sections["Global"]
    if one.text("NLBSecurityGroupMode") not in (None, "Managed"):
        why = "not supported: every network load balancer has a security group"
        raise one.wrong("NLBSecurityGroupMode", why, "Managed")
    return Config(
        cluster_id=_cluster_id(one),
        region=_region(one),
        vpc_id=_id(one, "VPC", "vpc-"),
        subnet_id=_id(one, "SubnetID", "subnet-"),
        route_table_id=_id(one, "RouteTableID", "rtb-"),
        role_arn=_arn(one, "RoleARN"),
        source_arn=_arn(one, "SourceARN"),
        disable_security_group_ingress=one.flag("DisableSecurityGroupIngress"),
        elb_security_group=_id(one, "ElbSecurityGroup", "sg-"),
        node_ip_families=_families(one),
        health_probe_mode=one.one_of(
            "ClusterServiceLoadBalancerHealthProbeMode", get_args(HealthProbeMode), "ServiceNodePort"
        ),
        health_probe_port=_port(one, "ClusterServiceSharedLoadBalancerHealthProbePort") or 10256,
        health_probe_path=one.matching("ClusterServiceSharedLoadBalancerHealthProbePath", "/.*", "not a path", "/…")
        or "/healthz",
        topology_types=_pattern(one, "SupportedTopologyInstanceTypePattern") or TOPOLOGY_TYPES,
        serve_nlb_class=one.flag("ServeNLBClass"),
        overrides=tuple(_overrides(sections[_OVERRIDE])),
    )


def region_of(zone: str) -> str | None:
    """The region of an Availability Zone, Local Zone or Wavelength Zone; None for other names."""
    found = _REGION_OF_ZONE.fullmatch(zone)
    return found[1] if found else None


def render(config: Config) -> str:
    """The text that `parse` reads back as `config`."""
    values = {
        "KubernetesClusterID": config.cluster_id,
        "Region": config.region,
        "VPC": config.vpc_id,
        "SubnetID": config.subnet_id,
        "RouteTableID": config.route_table_id,
        "RoleARN": config.role_arn,
        "SourceARN": config.source_arn,
        "DisableSecurityGroupIngress": "true" if config.disable_security_group_ingress else None,
        "ElbSecurityGroup": config.elb_security_group,
        "ServeNLBClass": "true" if config.serve_nlb_class else None,
    }
    lines = ["[Global]", *(f"{key} = {written(value)}" for key, value in values.items() if value is not None)]
    if config.node_ip_families != ("ipv4",):
        lines += [f"NodeIPFamilies = {family}" for family in config.node_ip_families]
    if config.health_probe_mode != "ServiceNodePort":
        lines.append(f"ClusterServiceLoadBalancerHealthProbeMode = {config.health_probe_mode}")
    if config.health_probe_port != 10256:
        lines.append(f"ClusterServiceSharedLoadBalancerHealthProbePort = {config.health_probe_port}")
    if config.health_probe_path != "/healthz":
        lines.append(f"ClusterServiceSharedLoadBalancerHealthProbePath = {written(config.health_probe_path)}")
    if config.topology_types != TOPOLOGY_TYPES:
        lines.append(f"SupportedTopologyInstanceTypePattern = {written(config.topology_types)}")
    for override in config.overrides:
        lines += ["", f'[ServiceOverride "{override.service}-{override.region}"]', f"Service = {override.service}"]
        lines += [f"Region = {override.region}", f"URL = {written(override.url)}"]
        lines.append(f"SigningRegion = {override.signing_region}")
        lines += [f"SigningName = {override.signing_name}"] if override.signing_name else []
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------------------------- values


def _cluster_id(one: Section) -> str:
    """Upstream's older key, a tag, may accompany or replace the ID."""
    tag = (one.text("KubernetesClusterTag") or "").removeprefix(CLUSTER_PREFIX)
    cluster = one.text("KubernetesClusterID") or tag or one.required("KubernetesClusterID")
    if tag and tag != cluster:
        raise one.wrong("KubernetesClusterTag", "contradicts KubernetesClusterID")
    if not _CLUSTER_ID.fullmatch(cluster):
        allowed = "at most 100 letters, digits, '.', '_' and '-', the first a letter or digit"
        raise one.wrong("KubernetesClusterID", "not a valid cluster ID", allowed)
    return cluster


def _region(one: Section) -> str | None:
    region, zone = one.text("Region"), one.text("Zone")
    found = region_of(zone) if zone else region
    if zone and not found:
        raise one.wrong("Zone", "not an Availability Zone", "such as eu-central-1a")
    if region and found != region:
        raise one.wrong("Zone", "contradicts Region")
    return found


def _id(one: Section, key: str, prefix: str) -> str | None:
    return one.matching(key, f"{prefix}[0-9a-f]+", "not a valid ID", f"{prefix}…")


def _arn(one: Section, key: str) -> str | None:
    allowed = "arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE"
    return one.matching(key, r"arn:[a-z-]+:[^:]+:[^:]*:\d*:.+", "not an ARN", allowed)


def _families(one: Section) -> tuple[IpFamily, ...]:
    families = [part.strip().lower() for value in one.texts(_REPEATABLE) for part in value.split(",") if part.strip()]
    for family in families:
        if family not in ("ipv4", "ipv6"):
            raise one.wrong(_REPEATABLE, "not a valid value", "ipv4, ipv6")
    if len(set(families)) < len(families):
        raise one.wrong(_REPEATABLE, "contains a duplicate family")
    return cast("tuple[IpFamily, ...]", tuple(families)) or ("ipv4",)


def _port(one: Section, key: str) -> int | None:
    value = one.text(key)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 5 and 1 <= int(value) <= 65535):
        raise one.wrong(key, "not a port number", "1 to 65535")
    return int(value)


def _pattern(one: Section, key: str) -> str | None:
    value = one.text(key)
    try:
        re.compile(value or "")
    except re.error as error:
        raise one.wrong(key, f"not a valid regular expression (error at character {error.pos})") from None
    return value


def _overrides(sections: Iterable[Section]) -> Iterator[ServiceOverride]:
    seen: set[tuple[str, str]] = set()
    for one in sections:
        service, region, url, signing_region = map(one.required, ("Service", "Region", "URL", "SigningRegion"))
        # As upstream, the SDK chooses the signing method, whatever this key contains.
        one.one_of("SigningMethod", ("v3", "v4"), "v4")
        if not is_url(url):
            raise one.wrong("URL", "not a URL", "http://HOST:PORT or https://HOST:PORT")
        for name in _services(one, service):
            if (name, region) in seen:
                raise wrong(one.shown, f"a duplicate override of {name} in this region")
            seen.add((name, region))
            yield ServiceOverride(name, url, region, signing_region, one.text("SigningName"))


def _services(one: Section, name: str) -> tuple[str, ...]:
    lower = name.lower()
    if lower in _NOT_CALLED:
        return ()
    if lower in SERVICES:
        return (lower,)
    known = (*SERVICES, *_SERVICES)
    if lower not in _SERVICES:
        why = f"not a service that the controller calls{did_you_mean(lower, known)}"
        raise one.wrong("Service", why, ", ".join(known))
    return _SERVICES[lower]
