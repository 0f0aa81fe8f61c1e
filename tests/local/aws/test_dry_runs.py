"""Doctor's dry runs against a site: each right that a role's policy lacks is found, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cloud_controller.cloud import CcmPods, DryRun
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.config import SERVICES, Config, ServiceOverride
from cloud_controller.clouds.aws.permissions import CONTROLLERS, statements
from cloud_controller.fence import read_only
from local.aws.site import AwsSite
from tests.local.aws.conftest import REGION, client

pytestmark = pytest.mark.integration

TAG = "kubernetes.io/cluster/prod-1"


@pytest.fixture
def network(aws_site: AwsSite) -> Iterator[dict[str, str]]:
    """A cluster's subnet, route table and nodes' group, deleted afterwards."""
    ec2 = client(aws_site, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24")["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    group = ec2.create_security_group(GroupName="nodes", Description="Nodes", VpcId=vpc)["GroupId"]
    ec2.create_tags(Resources=[subnet, table, group], Tags=[{"Key": TAG, "Value": "owned"}])
    yield {"vpc": vpc, "table": table, "group": group, "subnet": subnet}
    ec2.delete_security_group(GroupId=group)
    ec2.delete_route_table(RouteTableId=table)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)


@pytest.fixture
def role(aws_site: AwsSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A role without rights, whose credentials this process has; its ARN."""
    iam, sts = client(aws_site, "iam"), client(aws_site, "sts")
    arn = iam.create_role(RoleName="ccm", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    lent = sts.assume_role(RoleArn=arn, RoleSessionName="session")["Credentials"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", lent["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", lent["SecretAccessKey"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", lent["SessionToken"])
    yield str(arn)
    for name in iam.list_role_policies(RoleName="ccm")["PolicyNames"]:
        iam.delete_role_policy(RoleName="ccm", PolicyName=name)
    iam.delete_role(RoleName="ccm")


def allow(site: AwsSite, allowed: list[dict[str, Any]]) -> None:
    document = json.dumps({"Version": "2012-10-17", "Statement": allowed})
    client(site, "iam").put_role_policy(RoleName="ccm", PolicyName="rights", PolicyDocument=document)


def without(action: str) -> Iterator[dict[str, Any]]:
    """The CCM's statements but for one action."""
    for statement in statements(CONTROLLERS, "prod-1"):
        actions = [each for each in statement["Action"] if each != action]
        if actions:
            yield {**statement, "Action": actions}


def dry_run(site: AwsSite, role: str) -> DryRun:
    """What doctor, which cannot write, finds with the credentials of this process, where the CCM has that role."""
    overrides = tuple(ServiceOverride(service, site.endpoint, REGION, REGION) for service in SERVICES)
    cloud = Aws(Config("prod-1", region=REGION, overrides=overrides))
    cloud.fence_writes(read_only)
    return cloud.dry_run(CONTROLLERS, CcmPods({"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}, ()))


def state(site: AwsSite, network: dict[str, str]) -> list[Any]:
    ec2 = client(site, "ec2")
    in_vpc = [{"Name": "vpc-id", "Values": [network["vpc"]]}]
    return [
        ec2.describe_route_tables(Filters=in_vpc)["RouteTables"],
        ec2.describe_security_groups(Filters=in_vpc)["SecurityGroups"],
    ]


def test_with_the_policy_of_the_table_every_change_that_is_tried_is_allowed(
    aws_site: AwsSite, network: dict[str, str], role: str
) -> None:
    allow(aws_site, statements(CONTROLLERS, "prod-1"))
    before = state(aws_site, network)

    found = dry_run(aws_site, role)

    assert found.lacking == []
    assert {*found.allowed} == {
        "DeleteRoute",
        "CreateSecurityGroup",
        "AuthorizeSecurityGroupIngress",
        "RevokeSecurityGroupIngress",
    }
    assert state(aws_site, network) == before


@pytest.mark.parametrize("operation", ["DeleteRoute", "CreateSecurityGroup"])
def test_a_right_that_the_policy_lacks_is_found(
    aws_site: AwsSite, network: dict[str, str], role: str, operation: str
) -> None:
    allow(aws_site, [*without(f"ec2:{operation}")])
    before = state(aws_site, network)

    (lacking,) = dry_run(aws_site, role).lacking

    assert f"ec2 {operation}: UnauthorizedOperation" in lacking
    assert f"not authorized to perform: ec2:{operation}" in lacking
    assert state(aws_site, network) == before


def test_a_role_of_doctors_own_that_may_only_read_lacks_nothing_of_the_ccms(
    aws_site: AwsSite,
    network: dict[str, str],  # noqa: ARG001
    role: str,
) -> None:
    allow(aws_site, statements(CONTROLLERS, "prod-1", reads=True))

    found = dry_run(aws_site, role.replace("/ccm", "/another"))

    assert (found.allowed, found.lacking) == ((), ())
    (unknown,) = found.unknown
    assert "assumed-role/ccm/session, and the CCM as arn:aws:iam::" in unknown
