"""An account of AWS, as moto simulates it: a VPC over three zones, a group for nodes, and machines on demand."""

from __future__ import annotations

import copy
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.cloud import Aws
from cloud_controller.clouds.aws.config import SERVICES, Config, ServiceOverride
from tests.cloud_controller.calls import Calls
from tests.cloud_controller.clouds.aws.services import put_nodes
from tests.cloud_controller.cluster import Cluster

# moto is imported when it starts: most tests here do without, and would wait a second for it.
if TYPE_CHECKING:
    from moto.ec2.models import EC2Backend
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef, TagSpecificationTypeDef, TagTypeDef
    from mypy_boto3_elb import ElasticLoadBalancingClient
    from mypy_boto3_elbv2 import ElasticLoadBalancingv2Client

REGION = "eu-central-1"
CLUSTER = "prod-1"
CLUSTER_TAG = f"kubernetes.io/cluster/{CLUSTER}"
IMAGE = "ami-0123456789abcdef0"
ZONES = ("eu-central-1a", "eu-central-1b", "eu-central-1c")


@dataclass
class AwsAccount:
    """One account with one cluster's network. `public_subnets` and `private_subnets` are in the order of ZONES."""

    endpoint: str
    ec2: EC2Client
    elbv2: ElasticLoadBalancingv2Client
    elb: ElasticLoadBalancingClient
    acm: Any
    vpc_id: str = ""
    public_subnets: tuple[str, ...] = ()
    private_subnets: tuple[str, ...] = ()
    route_table_id: str = ""
    """Of the private subnets, with the cluster's tag; the VPC's main one leads to the internet gateway."""
    node_group_id: str = ""
    clients: dict[str, Any] = field(default_factory=dict)
    """boto3's of all processes: to make them anew takes as long as all calls of a restart."""

    def config(self, **changes: Any) -> Config:
        """The cloud config of the cluster, every service at moto's endpoint."""
        overrides = tuple(ServiceOverride(service, self.endpoint, REGION, REGION) for service in SERVICES)
        return Config(**{"cluster_id": CLUSTER, "region": REGION, "overrides": overrides, **changes})

    def api(self, **changes: Any) -> Api:
        """A client of the account, from a fresh start; `changes` are the config's."""
        return Api(self.config(**changes))

    def new_cloud(self, **config: Any) -> Aws:
        """The cluster as a controller that was just started sees it."""
        cloud = Aws(self.config(**config))
        cloud._api._clients = self.clients
        return cloud

    def certificate(self, domain: str = "example.com") -> str:
        """The ARN of a new certificate."""
        return str(self.acm.request_certificate(DomainName=domain)["CertificateArn"])

    def settle(self) -> None:
        """moto has finished whatever it answered."""

    def launch(
        self,
        count: int = 1,
        *,
        subnet: str | None = None,
        type: str = "m5.large",
        tags: dict[str, str] | None = None,
    ) -> list[InstanceTypeDef]:
        """Running machines in a private subnet (the first zone's by default), with the cluster's tag."""
        listed = tag_list({CLUSTER_TAG: "owned"} if tags is None else tags)
        tagged: list[TagSpecificationTypeDef] = [{"ResourceType": "instance", "Tags": listed}] if listed else []
        answer = self.ec2.run_instances(
            ImageId=IMAGE,
            MinCount=count,
            MaxCount=count,
            InstanceType=type,  # type: ignore[arg-type]
            SubnetId=subnet or self.private_subnets[0],
            SecurityGroupIds=[self.node_group_id],
            TagSpecifications=tagged,
        )
        # Their first answer says that they are pending.
        return self.instances([instance["InstanceId"] for instance in answer["Instances"]])

    def instances(self, ids: Sequence[str]) -> list[InstanceTypeDef]:
        """These machines as they are now, in this order."""
        pages = self.ec2.get_paginator("describe_instances").paginate(InstanceIds=[*ids])
        found = {
            instance["InstanceId"]: instance
            for page in pages
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        }
        return [found[each] for each in ids]


def tag_list(tags: dict[str, str]) -> list[TagTypeDef]:
    """Tags in EC2's form."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


@pytest.fixture(scope="session")
def _moto() -> Iterator[str]:
    from tests.moto_server import moto_server

    with moto_server() as url:
        yield url


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of nobody: no test reaches a real account, or asks a metadata service."""
    for name in ("AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-of-nobody")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


@pytest.fixture
def calls() -> Calls:
    """An observer of calls, for `Api.observer`."""
    return Calls()


@pytest.fixture(scope="session")
def _account(_moto: str) -> AwsAccount:
    """Whatever is in it. Kept for the whole session: to make clients is slow."""
    session = boto3.Session("AKIAIOSFODNN7EXAMPLE", "a-secret-of-nobody", region_name=REGION)
    return AwsAccount(
        _moto,
        session.client("ec2", endpoint_url=_moto),
        session.client("elbv2", endpoint_url=_moto),
        session.client("elb", endpoint_url=_moto),
        session.client("acm", endpoint_url=_moto),
    )


@pytest.fixture(scope="session")
def _network(_account: AwsAccount) -> tuple[AwsAccount, EC2Backend]:
    """An account with a network, and moto's side of it: made once, as its calls would take longer than most tests."""
    _reset(_account)
    account = replace(_account)
    _make_network(account)
    return account, copy.deepcopy(_ec2())


@pytest.fixture
def account(_network: tuple[AwsAccount, EC2Backend], monkeypatch: pytest.MonkeyPatch) -> AwsAccount:
    """An account with a cluster's network: a public and a private subnet in each zone, tagged as discovery wants it.

    Where moto's load balancers are not as AWS documents them, they are put right.
    """
    from local.aws.balancing import AS_AWS
    from tests.cloud_controller.clouds.aws import classic_as_aws

    for (owner, method), instead in AS_AWS.items():
        # moto has all but one of them.
        monkeypatch.setattr(owner, method, instead, raising=method != "describe_account_limits")
    classic_as_aws.mend(monkeypatch)
    account, network = _network
    _reset(account)
    # What is in it leads back to the backend, which is moto's own one here.
    vars(_ec2()).update(copy.deepcopy(vars(network), {id(network): _ec2()}))
    return account


@pytest.fixture
def cluster(account: AwsAccount) -> Cluster:
    """A cluster of two nodes, without Services."""
    made = Cluster()
    put_nodes(made, account.launch(2))
    return made


def _reset(account: AwsAccount) -> None:
    with urllib.request.urlopen(urllib.request.Request(f"{account.endpoint}/moto-api/reset", method="POST")) as answer:
        assert answer.status == 200


def _ec2() -> EC2Backend:
    """What moto, in this process, knows of EC2."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.ec2.models import ec2_backends

    return ec2_backends[DEFAULT_ACCOUNT_ID][REGION]


def _make_network(account: AwsAccount) -> None:
    ec2 = account.ec2
    account.vpc_id = ec2.create_vpc(CidrBlock="10.0.0.0/16", AmazonProvidedIpv6CidrBlock=True)["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[account.vpc_id], Tags=tag_list({CLUSTER_TAG: "owned"}))
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=account.vpc_id)
    in_vpc = [{"Name": "vpc-id", "Values": [account.vpc_id]}]
    main = ec2.describe_route_tables(Filters=in_vpc)["RouteTables"][0]["RouteTableId"]  # type: ignore[arg-type]
    ec2.create_route(RouteTableId=main, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    table = ec2.create_route_table(
        VpcId=account.vpc_id,
        TagSpecifications=[{"ResourceType": "route-table", "Tags": tag_list({CLUSTER_TAG: "owned"})}],
    )
    account.route_table_id = table["RouteTable"]["RouteTableId"]
    for index, zone in enumerate(ZONES):
        account.public_subnets += (_subnet(account, zone, f"10.0.{index}.0/24", "kubernetes.io/role/elb"),)
        # Room for thousands of machines.
        role = "kubernetes.io/role/internal-elb"
        private = _subnet(account, zone, f"10.0.{64 * (index + 1)}.0/18", role)
        account.private_subnets += (private,)
        ec2.associate_route_table(RouteTableId=account.route_table_id, SubnetId=private)
    group = ec2.create_security_group(
        GroupName="nodes",
        Description="nodes of the cluster",
        VpcId=account.vpc_id,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list({CLUSTER_TAG: "owned"})}],
    )
    account.node_group_id = group["GroupId"]


def _subnet(account: AwsAccount, zone: str, cidr: str, role: str) -> str:
    answer = account.ec2.create_subnet(
        VpcId=account.vpc_id,
        AvailabilityZone=zone,
        CidrBlock=cidr,
        TagSpecifications=[{"ResourceType": "subnet", "Tags": tag_list({CLUSTER_TAG: "shared", role: "1"})}],
    )
    return answer["Subnet"]["SubnetId"]
