"""A simulator of AWS (moto) and a stack whose provider `aws` uses it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.aws.provider.api import shared_session
from local.aws.provider.provider import AwsProvider
from tests.local.plugins.stack_with_cli import StackWithCli
from tests.moto_server import moto_server

REGION = "eu-central-1"
SERVICES = ("autoscaling", "ec2", "eks", "iam", "sts")


@pytest.fixture(scope="session")
def simulator() -> Iterator[str]:
    """The simulator's URL."""
    with moto_server() as url:
        yield url


class Aws:
    """The content of the simulator, read without the engine."""

    def __init__(self, url: str) -> None:
        self.url = url
        # Shared with the engine, so that the services' models are read only once.
        self._session = shared_session()

    def client(self, service: str) -> Any:
        make: Any = self._session.client
        return make(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )

    @property
    def config(self) -> dict[str, str]:
        """The provider's inputs."""
        return {"region": REGION, "endpoints": json.dumps([dict.fromkeys(SERVICES, self.url)])}

    def left(self) -> dict[str, list[str]]:
        """Everything that a new account does not have."""
        ec2, iam = self.client("ec2"), self.client("iam")
        own = [{"Name": "is-default", "Values": ["false"]}]
        vpcs = [v["VpcId"] for v in ec2.describe_vpcs(Filters=own)["Vpcs"]]
        inside = [{"Name": "vpc-id", "Values": vpcs or ["none"]}]
        reservations = ec2.describe_instances()["Reservations"]
        groups = self.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        found = {
            "vpcs": vpcs,
            "subnets": [s["SubnetId"] for s in ec2.describe_subnets(Filters=inside)["Subnets"]],
            "groups": [g["GroupId"] for g in ec2.describe_security_groups(Filters=inside)["SecurityGroups"]],
            "tables": [t["RouteTableId"] for t in ec2.describe_route_tables(Filters=inside)["RouteTables"]],
            "gateways": [g["InternetGatewayId"] for g in ec2.describe_internet_gateways()["InternetGateways"]],
            "templates": [t["LaunchTemplateName"] for t in ec2.describe_launch_templates()["LaunchTemplates"]],
            "instances": [
                i["InstanceId"] for r in reservations for i in r["Instances"] if i["State"]["Name"] != "terminated"
            ],
            "scaling": [g["AutoScalingGroupName"] for g in groups],
            "clusters": self.client("eks").list_clusters()["clusters"],
            "roles": [r["RoleName"] for r in iam.list_roles()["Roles"]],
            "policies": [p["PolicyName"] for p in iam.list_policies(Scope="Local")["Policies"]],
            "profiles": [p["InstanceProfileName"] for p in iam.list_instance_profiles()["InstanceProfiles"]],
            "issuers": [p["Arn"] for p in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]],
        }
        return {what: names for what, names in found.items() if names}


@pytest.fixture
def cloud(simulator: str, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """The simulator, reset to a new account."""
    # Every reset would make a thousand images, which no test needs.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    urllib.request.urlopen(urllib.request.Request(f"{simulator}/moto-api/reset", method="POST")).read()
    return Aws(simulator)


@pytest.fixture
def stack(tmp_path: Path) -> StackWithCli:
    """An empty stack."""
    return StackWithCli(tmp_path)


@pytest.fixture
def led(stack: StackWithCli, cloud: Aws) -> StackWithCli:
    """A stack whose provider `aws` is led to the simulator."""
    stack.factories["aws"] = AwsProvider
    stack.configure({f"aws:{key}": value for key, value in cloud.config.items()})
    return stack
