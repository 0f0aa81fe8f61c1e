"""A whole stack against the simulator of AWS: created, unchanged, changed, replaced, and deleted completely."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from pulumi import _types
from pulumi.runtime import rpc

from local.aws.provider.kinds import KINDS
from local.aws.provider.provider import AwsProvider
from local.aws.provider.recorded import recorder
from local.plugins.values import Secret
from tests.local.aws.provider.aws_program import ALL, RIGHTS, TRUST, USER_DATA, network, program

pytestmark = pytest.mark.cli


def declared(kind: str) -> set[str]:
    """The outputs that pulumi-aws declares for a type."""
    (module,) = rpc._RESOURCE_MODULES[kind.rpartition(":")[0]]
    info: Any = getattr(module, "mod_info")  # noqa: B009 - no attribute that the SDK types
    return set(_types.resource_types(getattr(import_module(info["fqn"]), info["classes"][kind])))


def scaled(cloud: Any, kind: str = "m5.large", *, template: Any = None, version: str = "", **group: Any) -> Any:
    """A program with a scaling group of machines of a kind, by the template's latest version or a given one."""
    subnet = cloud.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]

    def declare() -> None:
        made = aws.ec2.LaunchTemplate("t", image_id="ami-12c6146b", instance_type=kind, tags=template)
        launched: Any = {"id": made.id, "version": version or made.latest_version.apply(str)}
        aws.autoscaling.Group(
            "g", min_size=0, max_size=3, vpc_zone_identifiers=[subnet], launch_template=launched, **group
        )

    return declare


def test_after_an_up_the_next_up_and_refresh_change_nothing(led: Any, cloud: Any) -> None:
    first = led.up(program())

    assert first.ok, first.errors
    assert led.up(program()).counts == {"same": ALL}
    assert led.refresh().counts == {"same": ALL}
    assert led.up(program()).counts == {"same": ALL}
    assert len(cloud.left()["instances"]) == 2


def test_created_objects_match_the_program(led: Any, cloud: Any) -> None:
    led.up(program())

    ec2, scaling = cloud.client("ec2"), cloud.client("autoscaling")
    (instance, _) = (i for r in ec2.describe_instances()["Reservations"] for i in r["Instances"])
    assert {"Key": "kubernetes.io/cluster/main", "Value": "owned"} in instance["Tags"]
    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert group["LaunchTemplate"]["Version"] == "1"
    (template,) = ec2.describe_launch_template_versions(LaunchTemplateId=group["LaunchTemplate"]["LaunchTemplateId"])[
        "LaunchTemplateVersions"
    ]
    data = template["LaunchTemplateData"]
    assert data["UserData"] == USER_DATA and data["MetadataOptions"]["HttpTokens"] == "required"
    assert data["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 50
    nodes = [{"Name": "tag:Name", "Values": ["nodes"]}]
    (security_group,) = ec2.describe_security_groups(Filters=nodes)["SecurityGroups"]
    assert [p["IpProtocol"] for p in security_group["IpPermissionsEgress"]] == ["-1"]
    assert sorted(p["IpProtocol"] for p in security_group["IpPermissions"]) == ["-1", "tcp"]


def test_outputs_are_those_of_pulumi_aws(led: Any) -> None:
    outcome = led.up(program())
    assert outcome.ok, outcome.errors

    made = {r.type: r for r in led.all()}
    vpc, eks = made["aws:ec2/vpc:Vpc"], made["aws:eks/cluster:Cluster"]
    assert vpc.outputs["arn"].endswith(f":vpc/{vpc.id}") and vpc.outputs["enableDnsHostnames"] is True
    assert vpc.outputs["mainRouteTableId"].startswith("rtb-")
    assert vpc.outputs["defaultSecurityGroupId"].startswith("sg-")
    assert eks.id == "main" and eks.outputs["certificateAuthority"]["data"]
    assert eks.outputs["identities"][0]["oidcs"][0]["issuer"].startswith("https://")
    assert len(eks.outputs["vpcConfig"]["subnetIds"]) == 2
    assert made["aws:ec2/launchTemplate:LaunchTemplate"].outputs["latestVersion"] == 1
    assert {kind: made[kind].outputs.keys() - declared(kind) for kind in KINDS} == {kind: set() for kind in KINDS}


def test_calls_do_not_use_a_proxy_from_the_environment(led: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    outcome = led.up(lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16"))

    assert outcome.ok, outcome.errors


@pytest.mark.parametrize("real", [True, False])
def test_an_output_that_contains_a_secret_is_secret(led: Any, *, real: bool) -> None:
    def run() -> None:
        secret = pulumi.Output.secret("hunter2-hunter2")
        aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags={"key": secret})
        aws.iam.Policy("rights", policy=RIGHTS, path="/a/", description=secret)

    if not real:
        led.factories["aws"] = recorder

    assert led.up(run).ok and led.refresh().ok and led.up(run).counts == {"same": 3}
    assert isinstance(led.resources()["net"].outputs["tagsAll"], Secret) and "hunter2" not in led.files()


def test_a_preview_creates_nothing_and_predicts_replacements(led: Any, cloud: Any) -> None:
    before = cloud.left()
    assert led.preview(network).ok and cloud.left() == before
    led.up(lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16"))

    outcome = led.preview(lambda: aws.ec2.Vpc("net", cidr_block="10.1.0.0/16"))

    assert outcome.counts == {"same": 1, "replace": 1}


def test_a_preview_predicts_what_a_new_template_version_changes(led: Any, cloud: Any) -> None:
    led.up(scaled(cloud))

    assert led.preview(scaled(cloud, template={"Name": "t"})).counts == {"same": 2, "update": 1}
    assert led.preview(scaled(cloud, "m5.xlarge")).counts == {"same": 1, "update": 2}


def test_another_machine_type_is_a_new_template_version_which_the_group_uses(led: Any, cloud: Any) -> None:
    led.up(program())

    outcome = led.up(program(kind="m5.xlarge"))

    assert outcome.ok, outcome.errors
    assert outcome.counts == {"same": ALL - 2, "update": 2}
    (group,) = cloud.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert group["LaunchTemplate"]["Version"] == "2"


def test_an_instance_refresh_that_the_endpoint_does_not_support_fails_the_update_by_name(led: Any, cloud: Any) -> None:
    """moto has none; the group has its new template all the same, for future machines."""
    rolling = {"strategy": "Rolling"}
    led.up(scaled(cloud, instance_refresh=rolling))
    changed = scaled(cloud, "m5.xlarge", instance_refresh=rolling)

    failed = led.up(changed)

    assert not failed.ok and "start_instance_refresh" in failed.errors[0] and "older template" in failed.errors[0]
    assert led.resources()["g"].init_errors and not led.pending()
    assert led.up(changed).ok and not led.resources()["g"].init_errors


@pytest.mark.parametrize(
    ("triggers", "told"), [([], ""), (["tag"], "start_instance_refresh"), (["colour"], "colour is invalid")]
)
def test_a_change_of_a_trigger_starts_an_instance_refresh(led: Any, cloud: Any, triggers: list[str], told: str) -> None:
    """moto has none, so starting one fails."""

    def owned_by(owner: str) -> Any:
        tag = {"key": "owner", "value": owner, "propagate_at_launch": True}
        return scaled(cloud, version="1", instance_refresh={"strategy": "Rolling", "triggers": triggers}, tags=[tag])

    led.up(owned_by("a"))

    outcome = led.up(owned_by("b"))

    assert told in " ".join(outcome.errors)
    assert outcome.ok is not bool(told)


def test_drift_shows_in_a_refresh_and_the_next_up_corrects_it(led: Any, cloud: Any) -> None:
    def run() -> None:
        network()
        aws.iam.Policy("rights", policy=RIGHTS)

    led.up(run)
    ec2, iam = cloud.client("ec2"), cloud.client("iam")
    vpc = cloud.left()["vpcs"][0]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "Name", "Value": "somebody's"}])
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": False})
    rights = json.loads(RIGHTS)
    rights["Statement"][0]["Action"] = "*"
    (policy,) = iam.list_policies(Scope="Local")["Policies"]
    iam.create_policy_version(PolicyArn=policy["Arn"], PolicyDocument=json.dumps(rights), SetAsDefault=True)

    found = led.refresh()

    assert found.ok and sorted(d for d in found.done if d.startswith("update")) == ["update net", "update rights"]
    assert led.up(run).counts == {"same": 10, "update": 2}
    assert led.refresh().counts == {"same": 12}


def test_an_object_deleted_by_others_is_forgotten_by_a_refresh_and_recreated(led: Any, cloud: Any) -> None:
    led.up(network)
    ec2 = cloud.client("ec2")
    rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
    ssh = next(r for r in rules if r.get("FromPort") == 22)
    ec2.revoke_security_group_ingress(GroupId=ssh["GroupId"], SecurityGroupRuleIds=[ssh["SecurityGroupRuleId"]])

    assert "delete ssh" in led.refresh().done
    assert led.up(network).counts == {"same": 10, "create": 1}


def test_a_resource_with_a_fixed_name_is_deleted_before_its_replacement_is_made(led: Any, cloud: Any) -> None:
    led.up(lambda: aws.iam.Role("r", name="given", path="/a/", assume_role_policy=TRUST))

    outcome = led.up(lambda: aws.iam.Role("r", name="given", path="/b/", assume_role_policy=TRUST))

    assert outcome.ok and outcome.counts == {"same": 1, "replace": 1}
    assert [r["Path"] for r in cloud.client("iam").list_roles()["Roles"]] == ["/b/"]


def test_a_resource_with_a_random_name_is_replaced_create_first(led: Any, cloud: Any) -> None:
    led.up(lambda: aws.iam.Role("r", path="/a/", assume_role_policy=TRUST))
    before = led.resources()["r"].id

    outcome = led.up(lambda: aws.iam.Role("r", path="/b/", assume_role_policy=TRUST))

    assert outcome.done.index("replace r") < outcome.done.index("delete-replaced r")
    assert led.resources()["r"].id != before and cloud.left()["roles"] == [led.resources()["r"].id]


def test_an_ignored_change_is_not_sent(led: Any, cloud: Any) -> None:
    def waiting(seconds: int) -> Any:
        options = pulumi.ResourceOptions(ignore_changes=["desiredCapacity"])
        return scaled(cloud, desired_capacity=1, health_check_grace_period=seconds, opts=options)

    led.up(waiting(300))
    scaling = cloud.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=led.resources()["g"].id, DesiredCapacity=2)

    outcome = led.up(waiting(200))

    (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert outcome.ok and (group["DesiredCapacity"], group["HealthCheckGracePeriod"]) == (2, 200)


def test_an_ignored_tag_keeps_the_value_that_others_set(led: Any, cloud: Any) -> None:
    def run(name: str) -> Any:
        options = pulumi.ResourceOptions(ignore_changes=["tags.owner"])
        return lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags={"Name": name}, opts=options)

    led.up(run("old"))
    ec2, vpc = cloud.client("ec2"), led.resources()["net"].id
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "owner", "Value": "somebody"}])

    assert led.up(run("new")).counts == {"same": 1, "update": 1}
    tags = {tag["Key"]: tag["Value"] for tag in ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"]}
    assert (tags["Name"], tags.get("owner")) == ("new", "somebody")


def test_a_rule_whose_source_changes_its_kind_is_replaced(led: Any, cloud: Any) -> None:
    def rule(**source: Any) -> Any:
        def run() -> None:
            group = aws.ec2.SecurityGroup("g", vpc_id=aws.ec2.Vpc("net", cidr_block="10.0.0.0/16").id)
            given: Any = {key: group.id if value == "itself" else value for key, value in source.items()}
            aws.vpc.SecurityGroupIngressRule(
                "r", security_group_id=group.id, ip_protocol="tcp", from_port=1, to_port=2, **given
            )

        return run

    led.up(rule(cidr_ipv4="10.0.0.0/8"))

    assert led.up(rule(cidr_ipv4="10.0.0.0/9")).counts == {"same": 3, "update": 1}
    assert led.up(rule(referenced_security_group_id="itself")).counts == {"same": 3, "replace": 1}
    rules = cloud.client("ec2").describe_security_group_rules()["SecurityGroupRules"]
    mine = [r for r in rules if r.get("FromPort") == 1]
    assert len(mine) == 1 and "ReferencedGroupInfo" in mine[0]


@pytest.mark.parametrize("secret", [False, True])
def test_default_tags_are_on_every_object_and_not_a_difference(led: Any, cloud: Any, secret: bool) -> None:
    default = json.dumps({"tags": {"team": "clouds"}})
    led.configure({**{f"aws:{k}": v for k, v in cloud.config.items()}, "aws:defaultTags": default})

    def run() -> None:
        tags = {"Name": "net"}
        aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags=pulumi.Output.secret(tags) if secret else tags)

    led.up(run)

    (vpc,) = cloud.client("ec2").describe_vpcs(VpcIds=cloud.left()["vpcs"])["Vpcs"]
    both = {"team": "clouds", "Name": "net"}
    assert {tag["Key"]: tag["Value"] for tag in vpc["Tags"]}.items() >= both.items()
    assert secret or led.resources()["net"].outputs["tagsAll"] == both
    assert led.up(run).counts == {"same": 2} and led.refresh().counts == {"same": 2}


@pytest.mark.parametrize("provider", [AwsProvider, recorder])
def test_invalid_default_tags_are_an_error(led: Any, cloud: Any, provider: Any) -> None:
    led.factories["aws"] = provider
    led.configure({**{f"aws:{k}": v for k, v in cloud.config.items()}, "aws:defaultTags": "team: clouds"})

    outcome = led.up(lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16"))

    assert not outcome.ok and "defaultTags is not JSON" in outcome.errors[0]


def test_an_object_that_exists_is_imported(led: Any, cloud: Any) -> None:
    theirs = cloud.client("ec2").create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]

    outcome = led.up(lambda: aws.ec2.Vpc("net", cidr_block="10.7.0.0/16", opts=pulumi.ResourceOptions(import_=theirs)))

    assert outcome.ok, outcome.errors
    assert led.resources()["net"].id == theirs


def test_an_attachment_is_imported_by_its_role_and_policy(led: Any, cloud: Any) -> None:
    iam = cloud.client("iam")
    iam.create_role(RoleName="theirs", AssumeRolePolicyDocument=TRUST)
    policy = iam.create_policy(PolicyName="rights", PolicyDocument=RIGHTS)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="theirs", PolicyArn=policy)

    def run(id: str) -> Any:
        def declare() -> None:
            options = pulumi.ResourceOptions(import_=id)
            aws.iam.RolePolicyAttachment("a", role="theirs", policy_arn=policy, opts=options)

        return declare

    refused, imported = led.up(run("theirs")), led.up(run(f"theirs/{policy}"))

    assert not refused.ok and "ROLE/POLICY-ARN" in refused.errors[0]
    assert imported.ok and imported.counts == {"same": 1, "import": 1}, imported.errors


def test_an_unsupported_type_or_input_is_refused_by_name(led: Any) -> None:
    unknown_type = led.up(lambda: aws.sqs.Queue("q"))
    unknown_input = led.up(lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", ipv4_ipam_pool_id="p"))

    assert not unknown_type.ok and "aws:ec2/vpc:Vpc" in unknown_type.errors[0]
    assert not unknown_input.ok and "ipv4IpamPoolId" in unknown_input.errors[0]


def test_a_type_that_no_simulator_has_is_only_recorded(led: Any) -> None:
    def run() -> None:
        aws.eks.AccessEntry("nodes", cluster_name="main", principal_arn="arn:aws:iam::1:role/x", type="EC2_LINUX")
        aws.eks.Addon("driver", cluster_name="main", addon_name="aws-ebs-csi-driver")

    outcome = led.up(run)

    assert outcome.ok and all(led.resources()[name].simulated for name in ("nodes", "driver"))
    told = "simulated resources, with nothing real behind them:"
    assert {*outcome.warnings} == {f"{told} aws:eks/accessEntry:AccessEntry", f"{told} aws:eks/addon:Addon"}
    assert led.up(run).counts == {"same": 3}


def test_a_real_object_is_never_treated_as_recorded(led: Any, cloud: Any) -> None:
    """As after the endpoints are removed, or another engine's state is imported."""

    def run() -> None:
        aws.ec2.Vpc("net", cidr_block="10.0.0.0/16")

    led.up(run)
    led.factories["aws"] = recorder

    outcomes = [led.preview(run), led.up(run), led.up(lambda: None), led.refresh(), led.destroy()]

    assert not any(outcome.ok for outcome in outcomes)
    assert all("would only simulate package" in outcome.errors[0] for outcome in outcomes)
    assert len(cloud.left()["vpcs"]) == 1 and not led.resources()["net"].simulated


def test_functions_answer_from_the_simulator(led: Any) -> None:
    seen: list[Any] = []

    def run() -> None:
        seen.append(aws.get_availability_zones(state="available").names)
        seen.append(aws.get_caller_identity().account_id)

    assert led.preview(run).ok
    assert seen == [["eu-central-1a", "eu-central-1b", "eu-central-1c"], "123456789012"]
