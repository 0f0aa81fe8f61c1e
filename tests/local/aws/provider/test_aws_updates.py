"""Updates in place against the simulator of AWS: inputs that are added, changed or removed."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_aws as aws
import pytest

from local.aws.provider.api import Api
from local.aws.provider.comparison import compare
from local.aws.provider.kinds import KINDS
from local.plugins.provider import DiffRequest
from tests.local.aws.provider.aws_program import TRUST, USER_DATA, network

pytestmark = pytest.mark.cli


def template(**inputs: Any) -> Any:
    return lambda: aws.ec2.LaunchTemplate("t", image_id="ami-12c6146b", instance_type="m5.large", **inputs)


def role(**inputs: Any) -> Any:
    return lambda: aws.iam.Role("r", assume_role_policy=TRUST, **inputs)


def cluster(version: str | None = None, tags: Any = None, **access: bool) -> Any:
    """A program with a cluster of EKS."""

    def declare() -> aws.eks.Cluster:
        _, subnets, _ = network()
        config: Any = {"subnet_ids": [subnet.id for subnet in subnets], **access}
        role = "arn:aws:iam::123456789012:role/eks"
        return aws.eks.Cluster("c", name="c", role_arn=role, vpc_config=config, version=version, tags=tags)

    return declare


def newest(cloud: Any) -> dict[str, Any]:
    ec2 = cloud.client("ec2")
    (found,) = ec2.describe_launch_templates()["LaunchTemplates"]
    versions = ec2.describe_launch_template_versions(LaunchTemplateId=found["LaunchTemplateId"], Versions=["$Latest"])[
        "LaunchTemplateVersions"
    ]
    data: dict[str, Any] = versions[0]["LaunchTemplateData"]
    return data


def test_an_input_set_for_the_first_time_is_sent(led: Any, cloud: Any) -> None:
    led.up(template())

    outcome = led.up(template(user_data=USER_DATA))

    assert outcome.counts == {"same": 1, "update": 1}
    assert newest(cloud)["UserData"] == USER_DATA


def test_a_removed_input_is_removed_from_the_object(led: Any, cloud: Any) -> None:
    led.up(template(user_data=USER_DATA))

    led.up(template())

    assert "UserData" not in newest(cloud) or not newest(cloud)["UserData"]


def test_a_removed_field_is_removed_from_the_object(led: Any, cloud: Any) -> None:
    options = {"http_endpoint": "enabled", "http_tokens": "required"}
    led.up(template(metadata_options=options))

    led.up(template(metadata_options={"http_endpoint": "enabled"}))

    assert newest(cloud)["MetadataOptions"] == {"HttpEndpoint": "enabled"}


def test_a_tag_whose_case_changes_is_a_change(led: Any, cloud: Any) -> None:
    def value() -> str:
        (vpc,) = cloud.client("ec2").describe_vpcs(VpcIds=cloud.left()["vpcs"])["Vpcs"]
        return next(str(tag["Value"]) for tag in vpc["Tags"] if tag["Key"] == "Name")

    def run(name: str) -> Any:
        return lambda: aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", tags={"Name": name})

    led.up(run("net"))
    led.up(run("NET"))

    assert value() == "NET"


def test_a_description_can_be_added_and_removed(led: Any, cloud: Any) -> None:
    def reported() -> str:
        (found,) = cloud.client("iam").list_roles()["Roles"]
        return str(found.get("Description") or "")

    led.up(role())
    led.up(role(description="of nodes"))
    first = reported()
    led.up(role())

    assert (first, reported()) == ("of nodes", "")


def test_a_value_removed_by_others_shows_in_a_refresh_and_is_restored(led: Any, cloud: Any) -> None:
    def run() -> None:
        made = aws.iam.Role("r", assume_role_policy=TRUST)
        aws.iam.InstanceProfile("p", role=made.name)

    led.up(run)
    iam = cloud.client("iam")
    (profile,) = iam.list_instance_profiles()["InstanceProfiles"]
    name, given = profile["InstanceProfileName"], profile["Roles"][0]["RoleName"]
    iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=given)

    assert "update p" in led.refresh().done
    assert led.up(run).counts == {"same": 2, "update": 1}
    assert iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"][0]["RoleName"] == given


def test_a_preview_of_an_update_shows_unchanged_outputs(led: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Api.call
    seen: list[Any] = []

    def as_aws(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        answer = call(api, service, operation, **params)
        if operation == "describe_cluster":
            answer["cluster"]["resourcesVpcConfig"] |= {"vpcId": "vpc-1", "clusterSecurityGroupId": "sg-1"}
        return answer

    def run(**tags: str) -> Any:
        def declare() -> None:
            made = cluster(tags=tags)()
            group = made.vpc_config.apply(lambda config: config.cluster_security_group_id)
            pulumi.Output.all(group, made.tags_all, made.platform_version).apply(seen.append)

        return declare

    monkeypatch.setattr(Api, "call", as_aws)
    assert led.up(run(Name="old")).ok
    led.preview(run(Name="new"))

    (_, _, platform), _ = seen
    assert seen == [["sg-1", {"Name": "old"}, platform], ["sg-1", {"Name": "new"}, platform]]


def test_an_endpoint_access_removed_from_the_program_returns_to_the_default(led: Any) -> None:
    sent: list[Any] = []
    call = Api.call

    def listening(api: Api, service: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation == "update_cluster_config":
            sent.append(params["resourcesVpcConfig"])
            return {}
        return call(api, service, operation, **params)

    led.up(cluster(endpoint_private_access=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Api, "call", listening)
        outcome = led.up(cluster())

    assert outcome.ok and sent == [{"endpointPrivateAccess": False}]


def test_a_cluster_version_that_the_endpoint_cannot_change_is_a_clear_error(led: Any) -> None:
    led.up(cluster("1.31"))

    failed = led.up(cluster("1.32"))

    assert "update_cluster_version: HTTP 404; the endpoint may lack it" in failed.errors[0]
    assert led.up(cluster("1.31")).ok and not led.resources()["c"].init_errors


def test_an_error_names_an_unknown_field_but_not_its_value(led: Any) -> None:
    unknown = led.up(template(metadata_options={"http_endpoints": "x"}))
    wrong = led.up(lambda: template(monitoring={"enabled": pulumi.Output.secret("hunter2hunter2")})())

    assert "Http_endpoints" in unknown.errors[0]
    assert "Monitoring.Enabled" in wrong.errors[0] and "hunter2" not in wrong.errors[0]


@pytest.mark.parametrize(
    ("type", "before", "after", "replaced"),
    [
        ("aws:ec2/vpc:Vpc", {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}, []),
        ("aws:ec2/vpc:Vpc", {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}, ["instanceTenancy"]),
        ("aws:eks/cluster:Cluster", {"accessConfig": {"authenticationMode": "API"}}, {"accessConfig": {}}, []),
        (
            "aws:eks/cluster:Cluster",
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": True}},
            {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}},
            ["accessConfig.bootstrapClusterCreatorAdminPermissions"],
        ),
    ],
)
def test_a_replacement_may_depend_on_values(
    type: str, before: dict[str, Any], after: dict[str, Any], replaced: list[str]
) -> None:
    request = DiffRequest(
        urn=f"urn:pulumi:dev::test::{type}::x",
        id="x",
        old_inputs=before,
        old_outputs={},
        news=after,
        ignore_changes=(),
    )

    assert list(compare(KINDS[type], request).replaces) == replaced
