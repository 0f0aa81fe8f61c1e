"""The cloud config of AWS: upstream's files are read as upstream reads them, and errors name section and key."""

from __future__ import annotations

import pytest

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.aws.config import Config, ServiceOverride, parse, render

SEED = """
[Global]
Zone=us-west-2a
VPC=vpc-0123456789abcdef0
SubnetID=subnet-0123456789abcdef0
RouteTableID=rtb-0123456789abcdef0
KubernetesClusterTag=kubernetes.io/cluster/my-cluster
KubernetesClusterID=my-cluster
DisableSecurityGroupIngress=false
ElbSecurityGroup=sg-0123456789abcdef0

[ServiceOverride "ec2"]
Service=ec2
Region=us-west-2
URL=https://ec2.us-west-2.amazonaws.com
SigningRegion=us-west-2
"""


def config(text: str) -> Config:
    """The config with this in [Global] beside the cluster's id."""
    return parse(f"[Global]\nKubernetesClusterID = c\n{text}\n")


def test_the_example_of_the_field_is_understood() -> None:
    assert parse(SEED) == Config(
        cluster_id="my-cluster",
        region="us-west-2",
        vpc_id="vpc-0123456789abcdef0",
        subnet_id="subnet-0123456789abcdef0",
        route_table_id="rtb-0123456789abcdef0",
        elb_security_group="sg-0123456789abcdef0",
        overrides=(ServiceOverride("ec2", "https://ec2.us-west-2.amazonaws.com", "us-west-2", "us-west-2"),),
    )


def test_only_the_cluster_must_be_named() -> None:
    assert config("") == Config(cluster_id="c")
    with pytest.raises(InvalidConfiguration, match=r"\[Global\] KubernetesClusterID: missing"):
        parse("[Global]\nRegion = eu-central-1\n")


@pytest.mark.parametrize(
    ("line", "region"),
    [
        ("Region = eu-central-1", "eu-central-1"),
        ("Zone = eu-central-1b", "eu-central-1"),
        ("Zone = us-gov-west-1a", "us-gov-west-1"),
        ("Zone = us-west-2-lax-1a", "us-west-2"),
        ("Region = eu-central-1\nZone = eu-central-1b", "eu-central-1"),
    ],
)
def test_the_region_is_given_or_that_of_the_zone(line: str, region: str) -> None:
    assert config(line).region == region


def test_the_older_tag_may_say_the_id() -> None:
    assert parse("[Global]\nKubernetesClusterTag = kubernetes.io/cluster/old\n").cluster_id == "old"


@pytest.mark.parametrize(
    ("text", "families"),
    [
        ("", ("ipv4",)),
        ("NodeIPFamilies = ipv6", ("ipv6",)),
        ("NodeIPFamilies = ipv6\nNodeIPFamilies = ipv4", ("ipv6", "ipv4")),
        ("NodeIPFamilies = IPv4, ipv6", ("ipv4", "ipv6")),
    ],
)
def test_address_families_are_repeated_or_listed_in_order(text: str, families: tuple[str, ...]) -> None:
    assert config(text).node_ip_families == families


def test_one_endpoint_of_load_balancing_serves_both_of_its_apis() -> None:
    text = '[Global]\nKubernetesClusterID = c\n[ServiceOverride "1"]\nService = elasticloadbalancing\n'
    text += "Region = r\nURL = http://127.0.0.1:5000\nSigningRegion = r\n"

    assert [override.service for override in parse(text).overrides] == ["elb", "elbv2"]


@pytest.mark.parametrize(
    ("name", "services"),
    [
        ("EC2", ["ec2"]),
        ("Elastic Load Balancing", ["elb"]),
        ("Elastic Load Balancing v2", ["elbv2"]),
        ("sts", ["sts"]),
        ("KMS", []),
    ],
)
def test_services_have_the_names_of_either_sdk(name: str, services: list[str]) -> None:
    text = f'[Global]\nKubernetesClusterID = c\n[ServiceOverride "1"]\nService = {name}\nRegion = r\n'
    text += "URL = http://127.0.0.1:5000\nSigningRegion = r\n"

    assert [override.service for override in parse(text).overrides] == services


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Regoin = x", r"line 3: unknown key in \[Global\]; did you mean 'Region'"),
        ("VPC = subnet-1", r"\[Global\] VPC: not a valid ID"),
        ("RoleARN = admin", r"\[Global\] RoleARN: not an ARN"),
        ("Zone = europe", r"\[Global\] Zone: not an Availability Zone"),
        ("Region = eu-west-1\nZone = eu-central-1a", r"\[Global\] Zone: contradicts Region"),
        ("KubernetesClusterTag = other", r"KubernetesClusterTag: contradicts KubernetesClusterID"),
        ("DisableSecurityGroupIngress = maybe", r"DisableSecurityGroupIngress: not a valid value"),
        ("NLBSecurityGroupMode = Unmanaged", r"NLBSecurityGroupMode: not supported: .* \(allowed: Managed\)"),
        ("NodeIPFamilies = ipv5", r"NodeIPFamilies: not a valid value \(allowed: ipv4, ipv6\)"),
        ("NodeIPFamilies = ipv4, ipv4", r"NodeIPFamilies: contains a duplicate family"),
        ("ClusterServiceLoadBalancerHealthProbeMode = shared", r"HealthProbeMode: not a valid value"),
        ("ClusterServiceSharedLoadBalancerHealthProbePort = 0", r"HealthProbePort: not a port"),
        (f"ClusterServiceSharedLoadBalancerHealthProbePort = {'9' * 5000}", r"HealthProbePort: not a port"),
        ("ClusterServiceSharedLoadBalancerHealthProbePath = x", r"HealthProbePath: not a path"),
        (
            "SupportedTopologyInstanceTypePattern = [",
            r"InstanceTypePattern: not a valid regular expression \(error at character 0\)",
        ),
        ("[ServiceOverride]", r"line 3: not a known section"),
        ('[ServiceOverride "1"]\nService = ec2', r"\[ServiceOverride\] \(line 3\) Region: missing"),
    ],
)
def test_an_error_names_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"cloud config: .*{told}"):
        config(text)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("Service = ecc", r"Service: not a service that the controller calls; did you mean"),
        ("URL = ec2.example.com", r"URL: not a URL"),
        ("SigningMethod = v2", r"SigningMethod: not a valid value \(allowed: v3, v4\)"),
    ],
)
def test_an_override_that_cannot_hold_is_refused(change: str, told: str) -> None:
    values = {"Service": "ec2", "Region": "r", "URL": "http://127.0.0.1:5000", "SigningRegion": "r"}
    key, _, value = change.partition(" = ")
    lines = "\n".join(f"{name} = {given}" for name, given in (values | {key: value}).items())

    with pytest.raises(InvalidConfiguration, match=told):
        config(f'[ServiceOverride "1"]\n{lines}')


def test_two_overrides_of_one_service_in_one_region_are_refused() -> None:
    one = "Service = ec2\nRegion = r\nURL = http://127.0.0.1:5000\nSigningRegion = r\n"

    with pytest.raises(InvalidConfiguration, match="a duplicate override of ec2 in this region"):
        config(f'[ServiceOverride "1"]\n{one}[ServiceOverride "2"]\n{one}')


@pytest.mark.parametrize(
    "config",
    [
        Config("c"),
        Config(
            cluster_id="c",
            region="eu-central-1",
            vpc_id="vpc-1",
            subnet_id="subnet-1",
            route_table_id="rtb-1",
            role_arn="arn:aws:iam::123456789012:role/c;m",
            source_arn="arn:aws:eks:eu-central-1:123456789012:cluster/c",
            disable_security_group_ingress=True,
            elb_security_group="sg-1",
            node_ip_families=("ipv6", "ipv4"),
            health_probe_mode="Shared",
            health_probe_port=10300,
            health_probe_path="/live#1",
            topology_types=r"p5\..*",
            overrides=(
                ServiceOverride("ec2", "http://127.0.0.1:5000", "eu-central-1", "eu-central-1", "ec2"),
                ServiceOverride("elbv2", "http://127.0.0.1:5000", "eu-central-1", "eu-west-1"),
            ),
        ),
    ],
)
def test_what_is_written_is_read_back(config: Config) -> None:
    assert parse(render(config)) == config


def test_the_class_of_the_aws_load_balancer_controller_is_ours_only_where_it_is_said() -> None:
    assert not config("").serve_nlb_class
    assert config("ServeNLBClass = true").serve_nlb_class
    assert parse(render(config("ServeNLBClass = true"))).serve_nlb_class


def test_what_upstream_takes_and_what_is_so_here_anyway_is_taken() -> None:
    text = "[Global]\nKubernetesClusterID = c\nNLBSecurityGroupMode = Managed\n"
    text += '[ServiceOverride "1"]\nService = ec2\nRegion = r\nURL = http://127.0.0.1:5000\nSigningRegion = r\n'

    assert parse(f"{text}SigningMethod = v3\n") == parse(text)
