"""What is there already on AWS: a cluster that the program only reads, and the network of a cluster that it makes."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest
import yaml

from cloud_controller.clouds.aws.config import parse as parsed_cloud_config
from cloud_controller.clouds.aws.permissions import statements
from components.clouds.aws.access import cloud_config
from components.clouds.aws.stack_section import AwsConfig
from components.cluster import Cluster
from components.controller_manager import CloudControllerManager
from components.stack_config import ConfigError, parse
from tests.components.clouds.aws.test_aws_program import ATTACHMENT, MADE, POLICY, ROLE
from tests.components.stack_runs import config

ROOT = Path(__file__).parents[4]
MANAGER = "cloud-controller-manager"
SERVICE_ACCOUNT = "kubernetes:core/v1:ServiceAccount"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
ISSUER = "oidc.eks.eu-central-1.amazonaws.com/id/0123"
OIDC = f"arn:aws:iam::123456789012:oidc-provider/{ISSUER}"
KUBECONFIG = yaml.safe_dump({"clusters": [{"name": "c"}], "contexts": [{"name": "c"}], "users": [{"name": "u"}]})
SECTION = {"region": "eu-central-1", "kubernetesVersion": "1.36", "ccmImage": "registry.example/ccm:1"}
EXISTING: dict[str, Any] = {
    "cloud": "aws",
    "cluster": "existing",
    "clusterName": "shop",
    "existing": {"clusterId": "their-cluster", "networkId": "vpc-1", "podCidr": "10.0.0.0/16"},
    "kubeconfig": KUBECONFIG,
    "nodePools": [],
    "executors": {},
    "workloads": False,
    "aws": SECTION,
}
NETWORK = {"vpcId": "vpc-1", "subnets": {f"eu-central-1{zone}": f"subnet-{zone}" for zone in "abc"}}


@pytest.fixture
def run_stack(run_program: Any) -> Callable[..., Any]:
    """Run `__main__.py` with this config, as if everything was made."""
    return lambda given: run_program(lambda: runpy.run_path(str(ROOT / "__main__.py")), given, MADE)


def existing(**more: Any) -> dict[str, Any]:
    return {**EXISTING, "aws": {**SECTION, **more}}


def of_aws(recording: Any) -> dict[str, list[str]]:
    """The sorted names of AWS's resources by their types: those that do not depend on each other come in any order."""
    found: dict[str, list[str]] = {}
    for each in recording.registrations:
        if each.request.type.startswith("aws:"):
            found.setdefault(each.request.type, []).append(each.request.name)
    return {type_: sorted(names) for type_, names in found.items()}


def test_an_existing_cluster_gets_a_role_of_the_ccm_and_nothing_else(run_stack: Any) -> None:
    recording = run_stack(existing(existing={"oidcProvider": OIDC}))

    full = f"shop-{MANAGER}"
    assert of_aws(recording) == {ROLE: [full], POLICY: [full], ATTACHMENT: [full]}
    trust = json.loads(recording.one(ROLE, full).inputs["assumeRolePolicy"])["Statement"][0]
    assert trust["Principal"] == {"Federated": OIDC}
    assert trust["Condition"]["StringEquals"][f"{ISSUER}:sub"] == f"system:serviceaccount:kube-system:{MANAGER}"
    granted = json.loads(recording.one(POLICY, full).inputs["policy"])["Statement"]
    assert granted == statements(["service"], "their-cluster")
    account = recording.one(SERVICE_ACCOUNT, MANAGER).inputs
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": MADE[ROLE]["arn"]}


def test_the_role_is_the_managers_child_and_outlives_its_pods(run_stack: Any) -> None:
    recording = run_stack(existing(existing={"oidcProvider": OIDC}))

    manager = recording.one("cloudcontroller:index:CloudControllerManager", MANAGER)
    role = recording.one(ROLE, f"shop-{MANAGER}")
    attached = recording.one(ATTACHMENT, f"shop-{MANAGER}")
    assert role.request.parent == manager.urn
    assert {role.urn, attached.urn} <= recording.dependencies(recording.one(DEPLOYMENT, MANAGER).urn)
    assert "aws" in role.request.provider


def test_doctor_reads_an_existing_cluster_with_a_role_of_its_own(run_stack: Any) -> None:
    recording = run_stack(existing(existing={"oidcProvider": OIDC}) | {"doctorSchedule": "0 * * * *"})

    full = "shop-cloud-controller-doctor"
    trust = json.loads(recording.one(ROLE, full).inputs["assumeRolePolicy"])["Statement"][0]
    account = f"{MANAGER}-doctor"
    assert trust["Condition"]["StringEquals"][f"{ISSUER}:sub"] == f"system:serviceaccount:kube-system:{account}"
    granted = json.loads(recording.one(POLICY, full).inputs["policy"])["Statement"]
    assert granted == statements(["service"], "their-cluster", reads=True)
    made = recording.one(SERVICE_ACCOUNT, account).inputs["metadata"]
    assert made["annotations"] == {"eks.amazonaws.com/role-arn": MADE[ROLE]["arn"]}


def test_without_an_oidc_provider_the_ccm_has_the_role_of_its_machine(run_stack: Any) -> None:
    recording = run_stack(existing())

    assert of_aws(recording) == {}
    assert "annotations" not in recording.one(SERVICE_ACCOUNT, MANAGER).inputs["metadata"]


def test_what_tags_do_not_name_reaches_the_cloud_config_of_ccm_and_previews(run_stack: Any) -> None:
    named = {"subnetId": "subnet-1", "routeTableId": "rtb-1", "securityGroupId": "sg-1"}
    recording = run_stack(existing(existing=named, serveNlbClass=True))
    secret = recording.one("kubernetes:core/v1:Secret", f"{MANAGER}-config").inputs["stringData"]

    of_ccm = parsed_cloud_config(secret.get("value", secret)["cloud.conf"])
    settings: Any = SimpleNamespace(get={"aws": json.dumps({**SECTION, "existing": named, "serveNlbClass": True})}.get)
    of_preview = parsed_cloud_config(cloud_config(settings, "their-cluster", "vpc-1"))

    assert of_ccm == of_preview
    assert of_ccm.serve_nlb_class
    assert (of_ccm.cluster_id, of_ccm.vpc_id) == ("their-cluster", "vpc-1")
    assert (of_ccm.subnet_id, of_ccm.route_table_id, of_ccm.elb_security_group) == ("subnet-1", "rtb-1", "sg-1")


def test_the_api_server_says_what_the_cloud_config_of_the_stack_forbids(run_stack: Any) -> None:
    section = {"existing": {"securityGroupId": "sg-1"}, "serveNlbClass": True}
    recording = run_stack({**existing(**section), "serviceAdmission": "deny"})

    kind = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
    policy = recording.one(kind, "cloud-controller-services")
    assert "ElbSecurityGroup sg-1 in the cloud config decides" in str(policy.inputs["spec"]["variables"])
    assert "service.k8s.aws/nlb" in str(policy.inputs["spec"]["matchConditions"])


def refused(given: dict[str, Any]) -> str:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given.items()}
    with pytest.raises(ConfigError) as caught:
        parse(texts, {"kubeconfig"})
    return str(caught.value)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"vpcCidr": "10.0.0.0/16"}, "aws.vpcCidr is only for `cluster: new`; with `cluster: existing` remove the key"),
        ({"nodes": "asg"}, "aws.nodes is only for `cluster: new`"),
        ({"network": NETWORK}, "aws.network is only for `cluster: new`"),
        ({"existing": {"oidcProvider": "https://x"}}, 'existing.oidcProvider is "https://x": allowed: arn:aws:iam::'),
        ({"existing": {"subnet": "x"}}, "existing.subnet is not a known key; did you mean 'subnetId'? allowed: oidc"),
        ({"existing": {"subnetId": "x"}}, 'aws.existing.subnetId is "x": allowed: subnet-…'),
        ({"ccmImage": None}, "aws.ccmImage is null: nodes on AWS cannot pull the default image"),
    ],
)
def test_a_mistake_of_an_existing_cluster_on_aws_is_one_line(more: dict[str, Any], line: str) -> None:
    assert line in refused(existing(**more))


def test_the_network_of_an_existing_cluster_is_a_vpc() -> None:
    given = {**EXISTING, "existing": {**EXISTING["existing"], "networkId": "net-1"}}

    assert 'existing.networkId is "net-1": not an id of the cloud; allowed: vpc-…' in refused(given)


def in_network(stack: str, **more: Any) -> dict[str, Any]:
    """A stack of the project, in a VPC that is there already."""
    given = config(stack, network=NETWORK, **more)
    given["aws"].setdefault("vpcCidr", "10.0.0.0/16")
    given["aws"].pop("nodeSubnets", None)
    given["aws"].pop("internalEndpoints", None)
    return by_pulumi(given)


def by_pulumi(given: dict[str, Any]) -> dict[str, Any]:
    """The same stack, whose routes Pulumi writes, where the daemon would."""
    if given["aws"].get("controlPlane") == "ec2":
        given["executors"] = {**given["executors"], "route": "pulumi"}
    return given


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_a_new_cluster_in_an_existing_network_makes_no_part_of_it(stack: str, run_stack: Any) -> None:
    anew = of_aws(run_stack(by_pulumi(config(stack, internalEndpoints=False))))
    made = of_aws(run_stack(in_network(stack)))

    of_networks = ("vpc:Vpc", "subnet:Subnet", "routeTable", "route:Route", "internetGateway", "natGateway", "eip:Eip")
    assert {type_ for type_ in anew if any(each in type_ for each in of_networks)}
    assert {t: n for t, n in anew.items() if not any(each in t for each in of_networks)} == made


def test_routes_in_a_table_that_stays_are_not_left_to_the_daemon() -> None:
    stack = in_network("aws-staging")
    stack["executors"] = {**stack["executors"], "route": "daemon"}

    why = "the VPC's route table outlives the cluster and its daemon; allowed with aws.network: pulumi, vendor"
    assert f'executors.route is "daemon": {why}' in refused(stack)


def test_an_existing_network_may_be_smaller_than_one_that_is_cut_into_subnets() -> None:
    stack = in_network("aws-prod")
    stack["aws"]["vpcCidr"] = "10.0.0.0/24"
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in stack.items()}

    assert parse(texts).section(AwsConfig).vpc_cidr == "10.0.0.0/24"
    del stack["aws"]["network"]
    assert 'aws.vpcCidr is "10.0.0.0/24": allowed: an IPv4 range from /16 to /20' in refused(stack)


def test_machines_and_control_plane_are_in_the_subnets_that_are_named(run_stack: Any) -> None:
    recording = run_stack(in_network("aws-prod"))

    ids = {f"subnet-{zone}" for zone in "abc"}
    assert set(recording.one("aws:eks/cluster:Cluster", "aws-prod").inputs["vpcConfig"]["subnetIds"]) == ids
    groups = [r for r in recording.registrations if r.request.type == "aws:eks/nodeGroup:NodeGroup"]
    assert groups and all(set(group.inputs["subnetIds"]) <= ids for group in groups)
    in_vpc = [r for r in recording.registrations if r.request.type == "aws:ec2/securityGroup:SecurityGroup"]
    assert {group.inputs["vpcId"] for group in in_vpc} == {"vpc-1"}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"vpcCidr": None}, "aws.vpcCidr is missing: with aws.network it is the range of the VPC"),
        ({"nodeSubnets": "public"}, 'aws.nodeSubnets is "public": aws.network.subnets are the machines\' subnets'),
        (
            {"internalEndpoints": True},
            "aws.internalEndpoints is true: the program makes nothing in a VPC that is there",
        ),
        ({"network": {**NETWORK, "subnets": {"eu-central-1a": "subnet-a"}}}, "has no subnet; allowed: zones of aws."),
        ({"network": {**NETWORK, "vpcId": "v"}}, 'aws.network.vpcId is "v": allowed: vpc-…'),
        ({"network": {"vpcId": "vpc-1"}}, "aws.network.subnets is missing: The subnets of the machines"),
        ({"existing": {}}, "aws.existing is only for `cluster: existing`"),
    ],
)
def test_a_mistake_about_an_existing_network_is_one_line(given: dict[str, Any], line: str) -> None:
    stack = in_network("aws-prod")
    stack["aws"] = {key: value for key, value in {**stack["aws"], **given}.items() if value is not None}

    assert line in refused(stack)


def test_a_network_without_a_subnet_in_a_zone_is_refused_by_the_component_too(run_program: Any) -> None:
    settings = {"control_plane": "eks", "nodes": "asg", "kubernetes_version": "1.36", "vpc_cidr": "10.0.0.0/24"}
    network = {"vpc_id": "vpc-1", "subnets": {"eu-central-1a": "subnet-a"}}
    args: Any = {
        "cloud": "aws",
        "zones": ["eu-central-1a", "eu-central-1b"],
        "settings": {**settings, "network": network},
    }

    with pytest.raises(pulumi.InputPropertyError, match=r"zones of settings\.network\.subnets: eu-central-1a"):
        run_program(lambda: Cluster("c", args))


def test_a_manager_takes_a_role_or_what_to_make_one_of(run_program: Any) -> None:
    def manager(**more: Any) -> Any:
        args = {"cloud": "aws", "cluster_name": "c", "cluster_cidr": "10.0.0.0/16", "cloud_config": "[Global]"}
        return {**args, "controllers": ["service"], "identity": {"oidc_provider": OIDC}, **more}

    with pytest.raises(pulumi.InputPropertyError, match="must not be set with role"):
        run_program(lambda: CloudControllerManager("m", manager(role="arn:x")))
    with pytest.raises(pulumi.InputPropertyError, match=r"identity\.cluster_id.*is missing"):
        run_program(lambda: CloudControllerManager("m", manager()))
    with pytest.raises(pulumi.InputPropertyError, match="cloud mycloud does not support roles for pods"):
        run_program(lambda: CloudControllerManager("m", manager(cloud="mycloud")))
