"""The whole program of the stacks on AWS: what is made of both shapes, who may do what, and what nodes are told."""

from __future__ import annotations

import base64
import json
from ipaddress import IPv4Network
from typing import Any

import pulumi
import pytest

from cloud_controller.clouds.aws.permissions import statements
from cloud_controller.clouds.aws.versions import NEWEST
from components.clouds.aws.endpoints import APIS
from tests.components.stack_runs import RunStack, config, every, opened, program, runner, unguarded, visible

CLUSTER_TAG = "kubernetes.io/cluster/"
SIMULATOR = "http://127.0.0.1:5000"
ISSUER = "https://oidc.eks.eu-central-1.amazonaws.com/id/0123"

EKS = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
GROUP = "aws:autoscaling/group:Group"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
SUBNET = "aws:ec2/subnet:Subnet"
TABLE = "aws:ec2/routeTable:RouteTable"
NAT = "aws:ec2/natGateway:NatGateway"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
ROLE = "aws:iam/role:Role"
POLICY = "aws:iam/policy:Policy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ADDON = "aws:eks/addon:Addon"
PARAMETER = "aws:ssm/parameter:Parameter"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
SERVICE = "kubernetes:core/v1:Service"
CONTROLLER = "pulumi-python:dynamic/cloudcontroller:CloudController"
PROVIDER = "pulumi:providers:aws"
MANAGER = "cloud-controller-manager"

MADE: dict[str, Any] = {
    EKS: {
        "arn": "arn:aws:eks:eu-central-1:123456789012:cluster/aws-prod",
        "endpoint": "https://0123.eks.amazonaws.com",
        "certificateAuthority": {"data": "Q0E="},
        "identities": [{"oidcs": [{"issuer": ISSUER}]}],
    },
    "aws:iam/openIdConnectProvider:OpenIdConnectProvider": {"arn": "arn:aws:iam::123456789012:oidc-provider/0123"},
    ROLE: {"name": "the-role", "arn": "arn:aws:iam::123456789012:role/the-role"},
    POLICY: {"arn": "arn:aws:iam::123456789012:policy/the-policy"},
    TEMPLATE: {"latestVersion": 3},
    PARAMETER: {"arn": "arn:aws:ssm:eu-central-1:123456789012:parameter/x"},
    "aws:iam/instanceProfile:InstanceProfile": {"arn": "arn:aws:iam::123456789012:instance-profile/x"},
    "aws:lb/loadBalancer:LoadBalancer": {
        "arn": "arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/net/api/1",
        "dnsName": "api.elb.eu-central-1.amazonaws.com",
    },
    "aws:lb/targetGroup:TargetGroup": {"arn": "arn:aws:elasticloadbalancing:eu-central-1:1:targetgroup/api/1"},
    "tls:index/privateKey:PrivateKey": {"privateKeyPem": "A PRIVATE KEY"},
    "tls:index/selfSignedCert:SelfSignedCert": {"certPem": "A CERTIFICATE"},
    "tls:index/certRequest:CertRequest": {"certRequestPem": "A REQUEST"},
    "tls:index/locallySignedCert:LocallySignedCert": {"certPem": "A CLIENT CERTIFICATE"},
    SERVICE: {"status": {"loadBalancer": {"ingress": [{"hostname": "web.elb.amazonaws.com"}]}}},
}
"""What AWS and the cluster would answer."""


@pytest.fixture
def run_stack(run_program: Any) -> RunStack:
    """Run `__main__.py` with a stack's config, as if everything was made: `run_stack("aws-prod", nodes="asg")`."""
    return runner(run_program, MADE)


def user_data(recording: Any, name: str) -> str:
    return base64.b64decode(opened(recording.one(TEMPLATE, name).inputs["userData"])).decode()


def statements_of(recording: Any, role: str) -> list[dict[str, Any]]:
    policy = recording.one(POLICY, role).inputs["policy"]
    return list(json.loads(policy)["Statement"])


# ------------------------------------------------------------------------------------------------------- the network


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging", "aws-local"])
def test_load_balancers_find_a_public_and_a_private_subnet_in_each_zone(stack: str, run_stack: RunStack) -> None:
    recording = run_stack(stack, **({"endpoint": SIMULATOR} if stack == "aws-local" else {}))

    subnets = every(recording, SUBNET).values()

    for role in ("kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"):
        found = [s for s in subnets if s["tags"].get(role) == "1" and s["tags"][f"{CLUSTER_TAG}{stack}"]]
        assert sorted(s["availabilityZone"] for s in found) == [f"eu-central-1{zone}" for zone in "abc"]
    ranges = [IPv4Network(s["cidrBlock"]) for s in subnets]
    assert not any(a.overlaps(b) for i, a in enumerate(ranges) for b in ranges[:i])


def test_without_pod_routes_each_zone_has_its_own_nat_gateway(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    assert len(every(recording, NAT)) == 3
    assert not [t for t in every(recording, TABLE).values() if any(k.startswith(CLUSTER_TAG) for k in t["tags"])]


def test_where_routes_are_written_all_nodes_share_the_one_table_that_carries_the_clusters_tag(
    run_stack: RunStack,
) -> None:
    recording = run_stack("aws-staging")

    tagged = [name for name, t in every(recording, TABLE).items() if t["tags"].get(f"{CLUSTER_TAG}aws-staging")]
    associations = every(recording, "aws:ec2/routeTableAssociation:RouteTableAssociation")
    of_private = {a["routeTableId"] for name, a in associations.items() if "-private-" in name}
    assert tagged == ["aws-staging-private"]
    assert of_private == {"aws-staging-private-id"}
    assert len(every(recording, NAT)) == 1
    # It moves when a zone before its own is added, with its address.
    assert recording.one(NAT, "aws-staging-nat").request.deleteBeforeReplace


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_the_nodes_security_group_alone_carries_the_clusters_tag(stack: str, run_stack: RunStack) -> None:
    groups = every(run_stack(stack), SECURITY_GROUP)

    assert [name for name, g in groups.items() if f"{CLUSTER_TAG}{stack}" in g["tags"]] == [f"{stack}-nodes"]


def test_nodes_reach_only_the_api_server_of_ekss_control_plane(run_stack: RunStack) -> None:
    rules = every(run_stack("aws-prod"), INGRESS_RULE).values()

    plane = [rule for rule in rules if rule["securityGroupId"] == "aws-prod-control-plane-id"]
    of_others = [rule for rule in plane if rule.get("referencedSecurityGroupId") != "aws-prod-control-plane-id"]
    assert {(rule["ipProtocol"], rule["fromPort"], rule["toPort"]) for rule in of_others} == {("tcp", 443, 443)}


def test_only_the_cluster_itself_reaches_more_of_control_plane_machines_than_the_api_server(
    run_stack: RunStack,
) -> None:
    rules = every(run_stack("aws-staging", apiSources=["192.0.2.0/24"]), INGRESS_RULE).values()

    plane = [rule for rule in rules if rule["securityGroupId"] == "aws-staging-control-plane-id"]
    by_range = {rule["cidrIpv4"]: (rule["ipProtocol"], rule.get("toPort")) for rule in plane if "cidrIpv4" in rule}
    # Services, DNS and metrics of pods on these machines.
    assert by_range == {
        "10.1.0.0/16": ("tcp", 6443),
        "192.0.2.0/24": ("tcp", 6443),
        "100.64.0.0/16": ("-1", None),
    }


def test_control_plane_machines_reach_the_cluster_and_port_443(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging")

    templates = [t for name, t in every(recording, TEMPLATE).items() if "control-plane" in name]
    assert [t["vpcSecurityGroupIds"] for t in templates] == [["aws-staging-control-plane-id"]] * 2
    assert out_of(recording, "aws-staging-control-plane") == {
        ("aws-staging-nodes-id", "-1", None),
        ("aws-staging-control-plane-id", "-1", None),
        ("100.64.0.0/16", "-1", None),
        ("0.0.0.0/0", "tcp", 443),
    }


def test_a_stack_may_let_control_plane_machines_out_to_more(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging", controlPlaneEgress=["192.0.2.0/24"])

    assert ("192.0.2.0/24", "-1", None) in out_of(recording, "aws-staging-control-plane")


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_nodes_reach_everything_because_workloads_may(stack: str, run_stack: RunStack) -> None:
    assert out_of(run_stack(stack), f"{stack}-nodes") == {("0.0.0.0/0", "-1", None)}


def out_of(recording: Any, group: str) -> set[tuple[str, str, int | None]]:
    """Whither the rules of a security group let its members out."""
    rules = every(recording, "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule").values()
    return {
        (rule.get("cidrIpv4") or rule["referencedSecurityGroupId"], rule["ipProtocol"], rule.get("toPort"))
        for rule in rules
        if rule["securityGroupId"] == f"{group}-id"
    }


def test_no_security_group_rule_admits_the_internet(run_stack: RunStack) -> None:
    for stack in ("aws-prod", "aws-staging"):
        rules = every(run_stack(stack), INGRESS_RULE).values()

        assert [rule for rule in rules if rule.get("cidrIpv4") == "0.0.0.0/0"] == []


def test_the_api_server_has_a_public_address_only_with_api_sources(run_stack: RunStack) -> None:
    def vpc_config(**more: Any) -> Any:
        return run_stack("aws-prod", **more).one(EKS, "aws-prod").inputs["vpcConfig"]

    assert vpc_config()["publicAccessCidrs"] == ["198.51.100.0/24"]
    assert not vpc_config(apiSources=[])["endpointPublicAccess"]
    assert vpc_config()["endpointPrivateAccess"]


# ---------------------------------------------------------------------------------------------------------- machines


def test_every_machine_requires_imdsv2_and_has_an_encrypted_volume(
    run_stack: RunStack,
) -> None:
    for stack in ("aws-prod", "aws-staging"):
        for template in every(run_stack(stack), TEMPLATE).values():
            assert template["metadataOptions"]["httpTokens"] == "required"
            assert template["metadataOptions"]["httpPutResponseHopLimit"] == 1
            assert [d["ebs"]["encrypted"] for d in template["blockDeviceMappings"]] == ["true"]


def test_managed_node_groups_match_the_processor_of_their_instance_type(run_stack: RunStack) -> None:
    groups = every(run_stack("aws-prod"), NODE_GROUP)

    assert {g["amiType"] for g in groups.values()} == {"AL2023_ARM_64_STANDARD"}
    assert groups["aws-prod-workers"]["scalingConfig"] == {"minSize": 6, "maxSize": 6, "desiredSize": 6}
    assert groups["aws-prod-workers"]["labels"] == {"cloud-controller/pool": "workers"}
    assert groups["aws-prod-workers"]["clusterName"] == "aws-prod-id"


def test_machines_of_scaling_groups_carry_the_clusters_tag_and_their_nodes_labels(run_stack: RunStack) -> None:
    group = run_stack("aws-staging").one(GROUP, "aws-staging-workers").inputs

    tags = {tag["key"]: tag["value"] for tag in group["tags"] if tag["propagateAtLaunch"]}
    assert tags[f"{CLUSTER_TAG}aws-staging"] == "owned"
    assert tags["k8s.io/cluster-autoscaler/node-template/label/cloud-controller/pool"] == "workers"
    assert (group["minSize"], group["maxSize"], group["desiredCapacity"]) == (3, 3, 3)


def test_self_managed_nodes_of_eks_join_by_an_access_entry(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod", nodes="asg")

    text = user_data(recording, "aws-prod-workers")
    entry = recording.one("aws:eks/accessEntry:AccessEntry", "aws-prod-nodes").inputs
    settings = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert settings["spec"]["cluster"] == {
        "name": "aws-prod-id",
        "apiServerEndpoint": "https://0123.eks.amazonaws.com",
        "certificateAuthority": "Q0E=",
        "cidr": "172.20.0.0/16",
    }
    assert settings["spec"]["kubelet"]["flags"] == ["--node-labels=cloud-controller/pool=workers"]
    assert (entry["type"], entry["principalArn"]) == ("EC2_LINUX", MADE[ROLE]["arn"])


def test_self_managed_nodes_of_eks_keep_their_access_until_their_machines_are_gone(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod", nodes="asg")

    entry = recording.one("aws:eks/accessEntry:AccessEntry", "aws-prod-nodes").urn
    machines = recording.one(GROUP, "aws-prod-workers")
    assert entry in recording.dependencies(machines.urn)
    # It is recorded only where AWS is simulated, and what is made of recorded values is not made there.
    assert not any(entry in each.urns for each in machines.request.propertyDependencies.values())


def test_nodes_of_a_self_managed_cluster_wait_for_the_ccm_to_initialise_them(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging")

    for name in ("aws-staging-workers", "aws-staging-control-plane", "aws-staging-control-plane-first"):
        text = user_data(recording, name)
        assert "{name: cloud-provider, value: external}" in text
        assert '{name: provider-id, value: "aws:///$ZONE/$INSTANCE"}' in text
        assert "INSTANCE=$(imds instance-id)\nZONE=$(imds placement/availability-zone)\n" in text
        assert len(base64.b64encode(text.encode())) < 16 * 1024  # EC2 takes no more


def test_kube_controller_manager_leaves_the_ccms_controllers_alone(run_stack: RunStack) -> None:
    text = user_data(run_stack("aws-staging"), "aws-staging-control-plane-first")

    assert "name: controllers" not in text
    assert "controllerManager:\n  extraArgs:\n  - {name: cloud-provider, value: external}" in text


def test_no_user_data_holds_a_secret(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging")

    for name, template in every(recording, TEMPLATE).items():
        text = base64.b64decode(opened(template["userData"])).decode()
        assert "PRIVATE KEY" not in text, name


def test_only_one_control_plane_machine_may_initialise_the_cluster(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging")

    groups = every(recording, GROUP)
    begun_by = [
        name for name, group in groups.items() if group["launchTemplate"]["id"] == "aws-staging-control-plane-first-id"
    ]
    planes = [name for name in groups if name.startswith("aws-staging-control-plane")]
    assert begun_by == ["aws-staging-control-plane-0"]
    assert "FIRST=true" in user_data(recording, "aws-staging-control-plane-first")
    assert "FIRST=false" in user_data(recording, "aws-staging-control-plane")
    assert [groups[name]["maxSize"] for name in planes] == [1, 1, 1]
    assert all("instanceRefresh" not in groups[name] for name in planes)  # etcd's members are not replaced at once


def test_the_program_uses_the_cluster_once_its_api_server_is_healthy(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging")

    first = recording.one(GROUP, "aws-staging-control-plane-0").inputs
    waits_for = recording.dependencies(recording.one(DAEMON_SET, MANAGER).urn)
    assert first["waitForElbCapacity"] == 1
    assert recording.one(GROUP, "aws-staging-control-plane-0").urn in waits_for


# ---------------------------------------------------------------------------------------------------------- rights


def test_the_ccms_role_allows_exactly_what_its_controllers_call(run_stack: RunStack) -> None:
    found = statements_of(run_stack("aws-prod"), f"aws-prod-{MANAGER}")

    assert found == statements(["service"], "aws-prod")
    assert not [s for s in found for action in s["Action"] if "*" in action]
    assert not [s for s in found for action in s["Action"] if action in ("ec2:CreateRoute", "ec2:DeleteRoute")]


def test_only_the_ccms_service_account_may_assume_its_role(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    trust = json.loads(recording.one(ROLE, f"aws-prod-{MANAGER}").inputs["assumeRolePolicy"])
    account = recording.one("kubernetes:core/v1:ServiceAccount", MANAGER).inputs
    issuer = ISSUER.removeprefix("https://")
    assert trust["Statement"][0]["Condition"]["StringEquals"] == {
        f"{issuer}:sub": f"system:serviceaccount:kube-system:{MANAGER}",
        f"{issuer}:aud": "sts.amazonaws.com",
    }
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": MADE[ROLE]["arn"]}


def test_doctor_reads_with_a_role_that_only_its_service_account_may_assume(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod", doctorSchedule="0 * * * *")

    name, account = "aws-prod-cloud-controller-doctor", f"{MANAGER}-doctor"
    [trust] = json.loads(recording.one(ROLE, name).inputs["assumeRolePolicy"])["Statement"]
    issuer = ISSUER.removeprefix("https://")
    assert trust["Condition"]["StringEquals"] == {
        f"{issuer}:sub": f"system:serviceaccount:kube-system:{account}",
        f"{issuer}:aud": "sts.amazonaws.com",
    }
    assert statements_of(recording, name) == statements(["service"], "aws-prod", reads=True)
    job = recording.one("kubernetes:batch/v1:CronJob", account)
    pod = job.inputs["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account
    assert {"name": "AWS_ROLE_ARN", "value": MADE[ROLE]["arn"]} in pod["containers"][0]["env"]
    attached = recording.one(ATTACHMENT, name)
    assert {recording.one(ROLE, name).urn, attached.urn} <= recording.dependencies(job.urn)


def test_a_doctor_without_a_role_reads_quotas_with_the_ccms(run_stack: RunStack) -> None:
    ccm = "aws-staging-cloud-controller-manager"
    limits = "elasticloadbalancing:DescribeAccountLimits"

    def granted(schedule: str) -> set[str]:
        ours = {"ccm": "ours", "ccmVersion": None, "ccmImage": "registry.example/ccm:1"}
        recording = run_stack("aws-staging", **ours, doctorSchedule=schedule)
        return {action for each in statements_of(recording, ccm) for action in each["Action"]}

    assert granted("0 * * * *") - granted("") == {limits}


def test_without_a_schedule_doctor_has_no_role(run_stack: RunStack) -> None:
    assert "aws-prod-cloud-controller-doctor" not in every(run_stack("aws-prod"), ROLE)


def test_self_managed_workers_may_read_only_the_join_token(run_stack: RunStack) -> None:
    recording = run_stack("aws-staging")

    policy = json.loads(recording.one("aws:iam/rolePolicy:RolePolicy", "aws-staging-nodes-parameters").inputs["policy"])
    attached = [name for name in every(recording, ATTACHMENT) if name.startswith("aws-staging-nodes")]
    assert [s["Action"] for s in policy["Statement"]] == [["ssm:GetParameter"]]
    assert attached == ["aws-staging-nodes-AmazonEC2ContainerRegistryPullOnly"]


def test_parameters_have_unreserved_names_that_machines_and_roles_share(
    run_stack: RunStack,
) -> None:
    recording = run_stack("aws-staging")

    names = {each["name"] for each in every(recording, PARAMETER).values()}
    policies = [json.loads(p["policy"]) for p in every(recording, "aws:iam/rolePolicy:RolePolicy").values()]
    granted = {arn.partition(":parameter")[2] for p in policies for s in p["Statement"] for arn in s["Resource"]}
    assert not [name for name in names if name.lower().startswith(("/aws", "/ssm"))]
    assert granted == names - {"/cloud-controller/aws-staging/kubeconfig"}
    assert '--name "/cloud-controller/$CLUSTER/$1"' in user_data(recording, "aws-staging-workers")
    assert '"/cloud-controller/%s/%s"' in user_data(recording, "aws-staging-control-plane")


def test_keys_and_kubeconfigs_are_secret_everywhere(run_stack: RunStack, is_secret: Any) -> None:
    recording = run_stack("aws-staging")

    shown = visible(recording, is_secret)
    assert "A PRIVATE KEY" not in shown
    assert base64.b64encode(b"A PRIVATE KEY").decode() not in shown
    assert is_secret(recording.outputs["kubeconfig"])


# ------------------------------------------------------------------------------------------------------- volumes


@pytest.mark.parametrize("stack", ["aws-prod", "aws-local"])
def test_eks_gets_the_ebs_csi_driver_as_an_add_on(stack: str, run_stack: RunStack) -> None:
    recording = run_stack(stack, **({"endpoint": SIMULATOR} if stack == "aws-local" else {}))

    [addon] = [each for each in every(recording, ADDON).values() if each["addonName"] == "aws-ebs-csi-driver"]

    assert addon["clusterName"] == stack
    assert addon["serviceAccountRoleArn"] == MADE[ROLE]["arn"]
    assert "addonVersion" not in addon  # EKS's default for the cluster's Kubernetes


def test_a_self_managed_cluster_gets_no_eks_add_on(run_stack: RunStack) -> None:
    assert every(run_stack("aws-staging"), ADDON) == {}


def test_only_the_csi_drivers_service_account_may_assume_its_role(run_stack: RunStack) -> None:
    role = run_stack("aws-prod").one(ROLE, "aws-prod-ebs-csi-driver").inputs

    issuer = ISSUER.removeprefix("https://")
    assert json.loads(role["assumeRolePolicy"])["Statement"][0]["Condition"]["StringEquals"] == {
        f"{issuer}:sub": "system:serviceaccount:kube-system:ebs-csi-controller-sa",
        f"{issuer}:aud": "sts.amazonaws.com",
    }


def test_the_csi_driver_may_change_only_volumes_of_its_own_cluster(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    role = recording.one(ROLE, "aws-prod-ebs-csi-driver").inputs
    attached = [a for name, a in every(recording, ATTACHMENT).items() if name.startswith("aws-prod-ebs-csi-driver")]
    # The policy compares this tag with the tag `ebs.csi.aws.com/cluster-name` of volumes and snapshots.
    assert role["tags"]["eks-cluster-name"] == "aws-prod"
    assert [a["policyArn"] for a in attached] == ["arn:aws:iam::aws:policy/AmazonEBSCSIDriverEKSClusterScopedPolicy"]


def test_the_csi_driver_keeps_its_rights_until_it_is_deleted(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    [attached] = [n for n in every(recording, ATTACHMENT) if n.startswith("aws-prod-ebs-csi-driver")]
    addon = recording.one(ADDON, "aws-prod-ebs-csi-driver")
    assert recording.one(ATTACHMENT, attached).urn in recording.dependencies(addon.urn)


def test_the_csi_driver_may_attach_volumes_to_self_managed_nodes_but_not_detach_their_root_volumes(
    run_stack: RunStack,
) -> None:
    recording = run_stack("aws-prod", nodes="asg")

    tag = "ebs.csi.aws.com/cluster-name"
    group = recording.one(GROUP, "aws-prod-workers").inputs
    template = recording.one(TEMPLATE, "aws-prod-workers").inputs
    assert {each["key"]: each["value"] for each in group["tags"]}[tag] == "aws-prod"
    assert not [each for each in template["tagSpecifications"] if tag in each["tags"]]
    others = every(run_stack("aws-staging"), GROUP).values()
    assert not [each for group in others for each in group["tags"] if each["key"] == tag]


# ------------------------------------------------------------------------------------------------- internal endpoints


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_the_apis_that_the_ccm_calls_have_addresses_in_each_subnet_of_the_nodes(
    stack: str, run_stack: RunStack
) -> None:
    recording = run_stack(stack)

    endpoints = every(recording, ENDPOINT)

    assert {each["serviceName"].removeprefix("com.amazonaws.eu-central-1.") for each in endpoints.values()} == {*APIS}
    for each in endpoints.values():
        assert (each["vpcEndpointType"], each["privateDnsEnabled"]) == ("Interface", True)
        assert sorted(each["subnetIds"]) == [f"{stack}-private-eu-central-1{zone}-id" for zone in "abc"]
        assert each["securityGroupIds"] == [f"{stack}-endpoints-id"]


def test_only_the_vpc_reaches_the_endpoints_and_only_by_https(run_stack: RunStack) -> None:
    rule = run_stack("aws-prod").one(INGRESS_RULE, "aws-prod-endpoints").inputs

    assert (rule["cidrIpv4"], rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("10.0.0.0/16", "tcp", 443, 443)


def test_there_are_no_endpoints_unless_the_stack_asks_for_them(run_stack: RunStack) -> None:
    assert not every(run_stack("aws-prod", internalEndpoints=False), ENDPOINT)


# ----------------------------------------------------------------------------------------------------- logs and audit

LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"
TRAIL = "aws:cloudtrail/trail:Trail"


def test_ekss_logs_go_to_a_group_that_the_program_made_before_the_cluster_to_keep_them_as_long_as_the_stack_says(
    run_stack: RunStack,
) -> None:
    recording = run_stack("aws-prod")

    cluster, group = recording.one(EKS, "aws-prod"), recording.one(LOG_GROUP, "aws-prod")
    assert set(cluster.inputs["enabledClusterLogTypes"]) == {
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    }
    assert (group.inputs["name"], group.inputs["retentionInDays"]) == ("/aws/eks/aws-prod/cluster", 365)
    assert group.urn in recording.dependencies(cluster.urn)
    assert every(run_stack("aws-prod", logDays=None), LOG_GROUP) == {}


def of_bucket(recording: Any, kind: str) -> Any:
    """The inputs of a part of the trail's bucket."""
    return recording.one(f"aws:s3/{kind}:{kind[0].upper()}{kind[1:]}", "aws-prod-audit").inputs


def test_a_trail_records_the_calls_in_every_region(run_stack: RunStack) -> None:
    trail = run_stack("aws-prod").one(TRAIL, "aws-prod-audit").inputs

    assert trail["isMultiRegionTrail"]
    assert trail["includeGlobalServiceEvents"]
    assert trail["enableLogFileValidation"]


def test_the_trails_bucket_is_private_encrypted_and_versioned_and_keeps_as_long_as_the_stack_says(
    run_stack: RunStack,
) -> None:
    recording = run_stack("aws-prod")

    blocked = of_bucket(recording, "bucketPublicAccessBlock")
    [encrypted] = of_bucket(recording, "bucketServerSideEncryptionConfiguration")["rules"]
    [expiry] = of_bucket(recording, "bucketLifecycleConfiguration")["rules"]
    assert all(blocked[key] for key in ("blockPublicAcls", "blockPublicPolicy", "restrictPublicBuckets"))
    assert encrypted["applyServerSideEncryptionByDefault"]["sseAlgorithm"] == "AES256"
    assert of_bucket(recording, "bucketVersioning")["versioningConfiguration"] == {"status": "Enabled"}
    assert expiry["expiration"] == {"days": 365}
    assert expiry["noncurrentVersionExpiration"] == {"noncurrentDays": 365}


def test_only_the_trail_itself_may_write_into_its_bucket(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    statements_ = json.loads(of_bucket(recording, "bucketPolicy")["policy"])["Statement"]
    allowed = [each for each in statements_ if each["Effect"] == "Allow"]
    arn = "arn:aws:cloudtrail:eu-central-1:123456789012:trail/aws-prod-audit"
    assert {each["Principal"]["Service"] for each in allowed} == {"cloudtrail.amazonaws.com"}
    assert {each["Condition"]["StringEquals"]["aws:SourceArn"] for each in allowed} == {arn}
    policy = recording.one("aws:s3/bucketPolicy:BucketPolicy", "aws-prod-audit").urn
    assert policy in recording.dependencies(recording.one(TRAIL, "aws-prod-audit").urn)


def test_a_destroy_leaves_the_trails_bucket(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod", retain=False)

    assert recording.one("aws:s3/bucket:Bucket", "aws-prod-audit").request.retainOnDelete
    assert not recording.one(TRAIL, "aws-prod-audit").request.retainOnDelete


def test_a_self_managed_cluster_gets_a_trail_only_if_the_stack_says_so(run_stack: RunStack) -> None:
    assert every(run_stack("aws-staging"), TRAIL) == {}
    assert [*every(run_stack("aws-staging", auditDays=90), TRAIL)] == ["aws-staging-audit"]


# ------------------------------------------------------------------------------------------------------- the CCM


def test_on_eks_the_ccm_is_in_the_pod_network_behind_a_policy_which_the_cni_enforces(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    [policy] = every(recording, "kubernetes:networking.k8s.io/v1:NetworkPolicy").values()
    template = recording.one(DEPLOYMENT, MANAGER).inputs["spec"]["template"]
    assert "hostNetwork" not in template["spec"]
    assert policy["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    cni = recording.one(ADDON, "aws-prod-vpc-cni").inputs
    assert json.loads(cni["configurationValues"]) == {"enableNetworkPolicy": "true"}
    assert cni["preserve"]  # nodes need it until the end


def test_elsewhere_the_ccm_stays_on_its_nodes_network_because_pods_have_none_without_it(run_stack: RunStack) -> None:
    assert run_stack("aws-staging").one(DAEMON_SET, MANAGER).inputs["spec"]["template"]["spec"]["hostNetwork"]
    local = run_stack("aws-local", endpoint=SIMULATOR).one(DEPLOYMENT, MANAGER)
    assert local.inputs["spec"]["template"]["spec"]["hostNetwork"]


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging"])
def test_kubernetes_objects_are_declared_in_the_form_that_the_state_holds(stack: str, run_stack: RunStack) -> None:
    """Without what the Kubernetes provider's check drops, and with quantities as it spells them."""
    assert run_stack(stack).respelt() == {}


def test_on_eks_two_ccms_run_on_different_workers(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    spec = recording.one(DEPLOYMENT, MANAGER).inputs["spec"]
    pod = spec["template"]["spec"]
    [rule] = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (spec["replicas"], rule["topologyKey"]) == (2, "kubernetes.io/hostname")
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert "nodeSelector" not in pod
    assert recording.one("kubernetes:policy/v1:PodDisruptionBudget", MANAGER).inputs["spec"]["minAvailable"] == 1


def test_on_eks_the_ccm_uses_its_own_lease_because_eks_holds_the_default_one(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    [ccm] = recording.one(DEPLOYMENT, MANAGER).inputs["spec"]["template"]["spec"]["containers"]
    role = recording.one("kubernetes:rbac.authorization.k8s.io/v1:Role", MANAGER).inputs
    [granted] = [r["resourceNames"] for r in role["rules"] if r["resources"] == ["leases"] and "resourceNames" in r]
    assert "--leader-elect-resource-name=cloud-controller" in ccm["args"]
    assert granted == ["cloud-controller"]


def test_the_ccm_gets_its_credentials_by_a_token_for_aws_only(run_stack: RunStack) -> None:
    pod = run_stack("aws-prod").one(DEPLOYMENT, MANAGER).inputs["spec"]["template"]["spec"]

    [container] = pod["containers"]
    [token] = [v["projected"]["sources"][0]["serviceAccountToken"] for v in pod["volumes"] if "projected" in v]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert token["audience"] == "sts.amazonaws.com"
    assert environment["AWS_WEB_IDENTITY_TOKEN_FILE"] == "/var/run/secrets/cloud/token"
    assert environment["AWS_ROLE_ARN"] == MADE[ROLE]["arn"]
    assert "AWS_ENDPOINT_URL" not in environment


def test_aws_own_ccm_runs_with_its_own_flags(run_stack: RunStack) -> None:
    pod = run_stack("aws-staging").one(DAEMON_SET, MANAGER).inputs["spec"]["template"]["spec"]

    [container] = pod["containers"]
    assert container["image"] == "registry.k8s.io/provider-aws/cloud-controller-manager:v1.37.1"
    assert {"--cloud-provider=aws", "--configure-cloud-routes=true", "--leader-elect=true"} <= set(container["args"])
    names = "cloud-node-controller,node-route-controller,service-lb-controller,cloud-node-lifecycle-controller"
    assert f"--controllers={names}" in container["args"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"


def test_the_cloud_config_names_the_cluster_and_its_vpc(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    data = recording.one("kubernetes:core/v1:Secret", f"{MANAGER}-config").inputs["stringData"]
    text = opened(opened(data)["cloud.conf"])
    assert "KubernetesClusterID = aws-prod-id" in text
    assert "VPC = aws-prod-id" in text
    assert "Region = eu-central-1" in text


def test_on_eks_services_name_our_class_because_eks_serves_those_without(run_stack: RunStack) -> None:
    on_eks = run_stack("aws-prod").one(SERVICE, "web").inputs
    by_itself = run_stack("aws-staging").one(SERVICE, "web").inputs

    [ccm] = run_stack("aws-prod").one(DEPLOYMENT, MANAGER).inputs["spec"]["template"]["spec"]["containers"]
    assert "--require-load-balancer-class" in ccm["args"]
    assert on_eks["spec"]["loadBalancerClass"] == "cloud-controller/nlb"
    assert "loadBalancerClass" not in by_itself["spec"]
    assert by_itself["metadata"]["annotations"] == {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}


@pytest.mark.parametrize(
    ("stack", "given", "protected"), [("aws-prod", {}, "true"), ("aws-local", {"endpoint": SIMULATOR}, "false")]
)
def test_on_eks_aws_refuses_to_delete_the_load_balancers_of_a_protected_stack(
    stack: str, given: dict[str, str], protected: str, run_stack: RunStack
) -> None:
    service = run_stack(stack, **given).one(SERVICE, "web").inputs

    # Said when it is off, too: AWS keeps the attribute otherwise, and a destroy fails.
    attributes = service["metadata"]["annotations"]["service.beta.kubernetes.io/aws-load-balancer-attributes"]
    assert attributes == f"deletion_protection.enabled={protected}"


# ---------------------------------------------------------------------------------------------- the rest of the stack


def test_the_controllers_wait_for_pools_whose_machines_the_cloud_names(run_stack: RunStack) -> None:
    inputs = run_stack("aws-staging").one(CONTROLLER, "cloud-controller").inputs

    assert inputs["machines"] == []
    assert inputs["pools"] == [{"name": "control-plane", "count": 3}, {"name": "workers", "count": 3}]
    assert inputs["executors"]["volume"] == "vendor"


@pytest.mark.parametrize("subnets", ["private", "public"])
def test_a_preview_does_not_look_for_a_pod_route_table_that_does_not_exist_yet(
    subnets: str, run_program: Any, unknown: str
) -> None:
    settings = config("aws-staging", nodeSubnets=subnets)

    # As after a destroy that broke off: the VPC is there.
    recording = run_program(program, settings, MADE, missing={TABLE})

    assert recording.one(CONTROLLER, "cloud-controller").inputs["network_id"] == unknown
    assert recording.one(SECURITY_GROUP, "aws-staging-nodes").inputs["vpcId"] == "aws-staging-id"


def test_one_provider_of_the_stacks_region_serves_every_resource(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    [provider] = [r for r in recording.registrations if r.request.type == PROVIDER]
    of_aws = [r for r in recording.registrations if r.request.type.startswith("aws:")]
    assert provider.inputs["region"] == "eu-central-1"
    assert {r.request.provider.split("::aws::")[0] for r in of_aws} == {provider.urn.removesuffix("::aws")}


def test_the_stacks_protect_key_protects_the_cluster(run_stack: RunStack) -> None:
    recording = run_stack("aws-prod")

    protected = {r.request.type for r in recording.registrations if r.request.protect}
    assert {EKS, SUBNET, "aws:ec2/vpc:Vpc"} <= protected
    assert NODE_GROUP not in protected
    assert recording.one("cloudcontroller:index:Cluster", "aws-prod").request.retainOnDelete  # engines hand it down


def test_a_version_of_aws_ccm_that_may_not_fit_is_a_warning(
    run_stack: RunStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: warnings.append(text))

    run_stack("aws-staging", kubernetesVersion="1.99", ccmVersion="v1.99.1")

    [said] = warnings
    assert f"ccmVersion: the matrix does not have Kubernetes 1.99; the newest known row is Kubernetes {NEWEST}" in said


def test_only_a_simulated_stack_configures_an_endpoint_and_keys(run_stack: RunStack) -> None:
    local = run_stack("aws-local", endpoint=SIMULATOR)

    simulated = local.one(PROVIDER, "aws").inputs
    real = run_stack("aws-prod").one(PROVIDER, "aws").inputs
    endpoints = simulated["endpoints"]
    [given] = json.loads(endpoints) if isinstance(endpoints, str) else endpoints
    assert {"ec2", "eks", "iam", "autoscaling"} <= set(given)
    assert set(given.values()) == {SIMULATOR}
    assert "endpoints" not in real


@pytest.mark.parametrize(("stack", "workload"), [("aws-prod", DEPLOYMENT), ("aws-staging", DAEMON_SET)])
def test_the_ccm_keeps_its_rights_and_network_until_its_load_balancers_are_deleted(
    stack: str, workload: str, run_stack: RunStack
) -> None:
    recording = run_stack(stack)

    needed = recording.dependencies(recording.one(workload, MANAGER).urn)
    types = {
        ATTACHMENT,
        "aws:ec2/route:Route",
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        NAT,
        ENDPOINT,
        INGRESS_RULE,
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
        *({"aws:lb/listener:Listener", PARAMETER, "aws:iam/rolePolicy:RolePolicy"} if stack == "aws-staging" else ()),
    }
    left = {r.request.name for r in recording.registrations if r.request.type in types and r.urn not in needed}
    left -= {name for name in left if "-ebs-csi-driver-" in name}  # rights of another program
    if stack == "aws-staging":
        left -= {name for name in left if name.startswith("aws-staging-nodes")}  # it runs on the control plane
    # The one NAT gateway of a cluster with pod routes stands in the first zone; the others' public subnets lead nobody.
    assert left <= {f"aws-staging-public-eu-central-1{zone}" for zone in "bc"}


# -------------------------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("stack", ["aws-prod", "aws-staging", "aws-local"])
def test_the_destroy_guard_is_deleted_before_everything_else(stack: str, run_stack: RunStack) -> None:
    more = {"endpoint": SIMULATOR} if stack == "aws-local" else {}

    assert unguarded(run_stack(stack, **more)) == set()


# ------------------------------------------------------------------------------------------------------- the Services

ADDRESS = "pulumi-python:dynamic/cloudcontroller:ServiceAddress"


@pytest.mark.parametrize(
    ("stack", "more", "served"),
    [
        ("aws-prod", {}, ["cloud-controller/classic", "cloud-controller/nlb"]),
        (
            "aws-prod",
            {"serveNlbClass": True},
            ["cloud-controller/classic", "cloud-controller/nlb", "service.k8s.aws/nlb"],
        ),
        ("aws-staging", {}, []),
    ],
)
def test_services_may_have_the_classes_that_the_stacks_controllers_serve(
    stack: str, more: dict[str, Any], served: list[str], run_stack: RunStack
) -> None:
    recording = run_stack(stack, **more, workloads=True)

    assert recording.one("cloudcontroller:index:LoadBalancerService", "web").inputs["served_classes"] == served


def test_where_awss_own_ccm_serves_there_is_no_plan_to_ask_for_addresses(run_stack: RunStack) -> None:
    assert not every(run_stack("aws-staging", workloads=True), ADDRESS)
    assert every(run_stack("aws-prod"), ADDRESS).keys() == {"web", "echo"}
