"""As `cloud_environment`, on AWS (moto)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from typing import ClassVar

import boto3
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from benchmarks.aws.account import CLUSTER_ID, CLUSTER_TAG, CREDENTIALS, KEY, REGION, Account
from benchmarks.aws.moto import simulator
from benchmarks.aws.moto_gaps import corrected
from benchmarks.aws.proxy import operation
from cloud_controller.clouds.aws.config import SERVICES, Config, ServiceOverride, render
from local.control_plane.control_plane import ControlPlane
from tests.compatibility.aws_left import Baseline, baseline, found
from tests.crash.cloud_environment import CloudEnvironment, Kind, KindName, Machine
from tests.crash.control_plane import undisturbed_control_plane
from tests.crash.daemon import Json

_LOOKS = 20
"""How often the account is looked through until nothing went meanwhile."""


class AwsEnvironment(CloudEnvironment):
    """One cluster on one account of moto. `before`: what there is besides load balancers."""

    prefix = "service.beta.kubernetes.io/aws-load-balancer-"
    kinds: ClassVar[Mapping[KindName, Kind]] = {"classic": Kind(), "network": Kind({"type": "nlb"})}

    def __init__(self, control_plane: ControlPlane, endpoint: str, directory: Path) -> None:
        super().__init__(
            control_plane, directory, cloud_name="aws", endpoint=endpoint, naming=_operation, mending=corrected
        )
        self.endpoint = endpoint
        self.account = Account(endpoint)
        self.route_table = self._route_table()
        session = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name=REGION)
        acm = session.client("acm", endpoint_url=endpoint)
        self.certificate = acm.request_certificate(DomainName="shop.example.com")["CertificateArn"]
        self.before: Baseline = baseline(self.account)

    def cloud_config(self, endpoint: str) -> str:
        """See `CloudEnvironment.cloud_config`."""
        overrides = tuple(ServiceOverride(service, endpoint, REGION, REGION) for service in SERVICES)
        return render(
            Config(
                cluster_id=CLUSTER_ID,
                region=REGION,
                vpc_id=self.account.vpc,
                route_table_id=self.route_table,
                overrides=overrides,
            )
        )

    def variables(self) -> Mapping[str, str]:
        """See `CloudEnvironment.variables`."""
        return {**CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}

    def machine(self) -> Machine:
        """See `CloudEnvironment.machine`."""
        (made,) = self.account.add_machines(1)
        return made

    def end_machine(self, machine: Machine) -> None:
        """See `CloudEnvironment.end_machine`."""
        self.account.ec2.terminate_instances(InstanceIds=[machine.id])

    def routes(self) -> Mapping[str, str]:
        """See `CloudEnvironment.routes`."""
        (table,) = self.account.ec2.describe_route_tables(RouteTableIds=[self.route_table])["RouteTables"]
        return {
            route["DestinationCidrBlock"]: route["InstanceId"] for route in table["Routes"] if route.get("InstanceId")
        }

    def left(self) -> Json:
        """See `CloudEnvironment.left`."""
        for _ in range(_LOOKS):
            # What went while the account was being looked through is missed in many ways, moto's own among them.
            with contextlib.suppress(ClientError, ResponseParserError, KeyError):
                return found(self.account, self.before)
        return found(self.account, self.before)

    def load_balancer_names(self) -> list[str]:
        """What AWS calls those that there are."""
        network = self.account.elbv2.describe_load_balancers()["LoadBalancers"]
        classic = self.account.elb.describe_load_balancers()["LoadBalancerDescriptions"]
        return [*(lb["LoadBalancerName"] for lb in network), *(lb["LoadBalancerName"] for lb in classic)]

    def remove_load_balancing(self) -> None:
        """See `CloudEnvironment.remove_load_balancing`."""
        elb, elbv2, ec2 = self.account.elb, self.account.elbv2, self.account.ec2
        for classic in elb.describe_load_balancers()["LoadBalancerDescriptions"]:
            elb.delete_load_balancer(LoadBalancerName=classic["LoadBalancerName"])
        for lb in elbv2.describe_load_balancers()["LoadBalancers"]:
            elbv2.delete_load_balancer(LoadBalancerArn=lb["LoadBalancerArn"])
        for target_group in elbv2.describe_target_groups()["TargetGroups"]:
            elbv2.delete_target_group(TargetGroupArn=target_group["TargetGroupArn"])
        for group in ec2.describe_security_groups()["SecurityGroups"]:
            if group.get("VpcId") != self.account.vpc:
                continue
            if group["GroupId"] not in self.before.groups:
                ec2.delete_security_group(GroupId=group["GroupId"])
            elif group["GroupId"] == self.account.node_group and group["IpPermissions"]:
                ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=group["IpPermissions"])

    def remove_routes(self) -> None:
        """See `CloudEnvironment.remove_routes`."""
        for cidr in self.routes():
            self.account.ec2.delete_route(RouteTableId=self.route_table, DestinationCidrBlock=cidr)

    def _route_table(self) -> str:
        ec2 = self.account.ec2
        table = ec2.create_route_table(VpcId=self.account.vpc)["RouteTable"]["RouteTableId"]
        ec2.create_tags(Resources=[table], Tags=[{"Key": CLUSTER_TAG, "Value": "owned"}])
        for subnet in self.account.private:
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
        return table


@contextlib.contextmanager
def aws_environment(directory: Path) -> Iterator[AwsEnvironment]:
    """One, until the block ends."""
    moto = directory / "moto"
    moto.mkdir()
    with undisturbed_control_plane(directory / "control-plane") as control_plane, simulator(moto) as simulated:
        # Not moto itself: where two threads of its own meet, it answers 500, to daemons and tests alike.
        yield AwsEnvironment(control_plane, simulated.endpoint, directory)


def _operation(_path: str, headers: Message, body: bytes) -> str:
    return operation(headers, body)
