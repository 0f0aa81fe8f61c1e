"""Updates of a cluster's network: moto in this process, with the site's corrections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from local.aws.clusters import AS_AWS

REGION = "eu-central-1"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Clients of EKS and EC2."""
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    for (owner, method), instead in AS_AWS.items():
        monkeypatch.setattr(owner, method, instead)
    with mock_aws():
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        make: Any = boto3.client
        yield [make(service, region_name=REGION, **keys) for service in ("eks", "ec2")]


def subnet(ec2: Any, vpc: str, index: int, zone: str) -> str:
    made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{index}.0/24", AvailabilityZone=f"{REGION}{zone}")
    return str(made["Subnet"]["SubnetId"])


def test_new_subnets_must_be_in_the_first_zones_and_other_settings_stay(aws: Any) -> None:
    eks, ec2 = aws
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    a, b, other_a, c = (subnet(ec2, vpc, index, zone) for index, zone in enumerate("abac"))
    config = {"subnetIds": [a, b], "endpointPrivateAccess": True}
    eks.create_cluster(name="c", roleArn="arn:aws:iam::123456789012:role/eks", resourcesVpcConfig=config)

    eks.update_cluster_config(name="c", resourcesVpcConfig={"subnetIds": [other_a, b]})

    found = eks.describe_cluster(name="c")["cluster"]["resourcesVpcConfig"]
    assert (found["subnetIds"], found["endpointPrivateAccess"]) == ([other_a, b], True)
    for refused in ([a, c], [a, b, c], [a]):
        with pytest.raises(ClientError, match="exact set of AZs 'eu-central-1a, eu-central-1b'"):
            eks.update_cluster_config(name="c", resourcesVpcConfig={"subnetIds": refused})


def test_the_endpoints_access_can_change_without_naming_subnets(aws: Any) -> None:
    eks, ec2 = aws
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [subnet(ec2, vpc, index, zone) for index, zone in enumerate("ab")]
    config: Any = {"subnetIds": subnets}
    eks.create_cluster(name="c", roleArn="arn:aws:iam::123456789012:role/eks", resourcesVpcConfig=config)

    eks.update_cluster_config(name="c", resourcesVpcConfig={"endpointPublicAccess": False})

    found = eks.describe_cluster(name="c")["cluster"]["resourcesVpcConfig"]
    assert (found["subnetIds"], found["endpointPublicAccess"]) == (subnets, False)
