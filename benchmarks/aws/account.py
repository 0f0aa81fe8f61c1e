"""The simulated AWS before a controller starts: a VPC over three zones, and machines of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import boto3

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef, TagTypeDef
    from mypy_boto3_elb import ElasticLoadBalancingClient
    from mypy_boto3_elbv2 import ElasticLoadBalancingv2Client

REGION = "us-east-1"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
CLUSTER_ID = "benchmark"
CLUSTER_TAG = f"kubernetes.io/cluster/{CLUSTER_ID}"
INSTANCE_TYPE: Final = "m5.large"
# moto does not check credentials, but no client sends a call without.
KEY = "testing"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": KEY}
_IMAGE = "ami-0123456789abcdef0"
_MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Machine:
    """An instance, as a kubelet on it would register it."""

    id: str
    zone: str
    name: str
    address: str

    @property
    def provider_id(self) -> str:
        """aws:///ZONE/ID."""
        return f"aws:///{self.zone}/{self.id}"


class Account:
    """One account of the simulated AWS, called directly: these calls are not counted."""

    def __init__(self, url: str) -> None:
        session = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name=REGION)
        self.ec2: EC2Client = session.client("ec2", endpoint_url=url)
        self.elb: ElasticLoadBalancingClient = session.client("elb", endpoint_url=url)
        self.elbv2: ElasticLoadBalancingv2Client = session.client("elbv2", endpoint_url=url)
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self._tag(self.vpc, {CLUSTER_TAG: "shared"})
        self.public = self._subnets(first=0, role="kubernetes.io/role/elb")
        self.private = self._subnets(first=4, role="kubernetes.io/role/internal-elb")
        self._lead_out(self.public)
        self.node_group = self.add_group("nodes", {CLUSTER_TAG: "owned"})

    def add_machines(self, count: int, *, public: bool = False) -> list[Machine]:
        """Running instances, spread over the zones' private subnets, with the cluster's tag.

        `public`: in public subnets instead, each with a public address.
        """
        machines: list[Machine] = []
        subnets = self.public if public else self.private
        for number, subnet in enumerate(subnets):
            share = count // len(subnets) + (number < count % len(subnets))
            for size in _chunks(share, _MOST_AT_ONCE):
                answer = self.ec2.run_instances(
                    ImageId=_IMAGE,
                    MinCount=size,
                    MaxCount=size,
                    InstanceType=INSTANCE_TYPE,
                    SubnetId=subnet,
                    SecurityGroupIds=[self.node_group],
                    TagSpecifications=[{"ResourceType": "instance", "Tags": _tags({CLUSTER_TAG: "owned"})}],
                )
                machines += [_machine(instance) for instance in answer["Instances"]]
        return machines

    def add_group(self, name: str, tags: Mapping[str, str]) -> str:
        """Add a security group that the controller does not own."""
        group = self.ec2.create_security_group(GroupName=name, Description=name, VpcId=self.vpc)["GroupId"]
        if tags:
            self._tag(group, tags)
        return group

    def _subnets(self, first: int, role: str) -> tuple[str, ...]:
        subnets = []
        for number, zone in enumerate(ZONES, first):
            cidr = f"10.0.{number * 32}.0/19"
            subnet = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
            self._tag(subnet, {CLUSTER_TAG: "shared", role: "1", "Name": f"{role.rpartition('/')[2]}-{zone}"})
            subnets.append(subnet)
        return tuple(subnets)

    def _lead_out(self, subnets: Sequence[str]) -> None:
        """Make the subnets public: a route table of theirs leads to the internet."""
        gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=self.vpc)
        table = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        self.ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        for subnet in subnets:
            self.ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
            self.ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": True})

    def _tag(self, resource: str, tags: Mapping[str, str]) -> None:
        self.ec2.create_tags(Resources=[resource], Tags=_tags(tags))


def _machine(instance: InstanceTypeDef) -> Machine:
    return Machine(
        id=instance["InstanceId"],
        zone=instance["Placement"]["AvailabilityZone"],
        name=instance["PrivateDnsName"],
        address=instance["PrivateIpAddress"],
    )


def _tags(tags: Mapping[str, str]) -> list[TagTypeDef]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _chunks(count: int, most: int) -> Iterator[int]:
    while count > 0:
        yield min(count, most)
        count -= most
