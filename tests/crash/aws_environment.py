"""A real API server and a simulated AWS (moto), for daemons that are killed again and again.

No kubelet runs on the cloud's machines, and its load balancers forward nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from email.message import Message
from itertools import count
from pathlib import Path
from typing import Literal

import boto3
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from benchmarks.aws.account import CLUSTER_ID, CLUSTER_TAG, CREDENTIALS, KEY, REGION, Account, Machine
from benchmarks.aws.moto import simulator
from benchmarks.aws.moto_gaps import corrected
from benchmarks.aws.proxy import operation
from cloud_controller.clouds.aws.config import SERVICES, Config, ServiceOverride, render
from cloud_controller.kube import Kube
from local.control_plane.control_plane import ControlPlane
from tests.compatibility.aws_left import Baseline, baseline, found
from tests.crash.control_plane import undisturbed_control_plane
from tests.crash.daemon import Daemon, Daemons, Json
from tests.crash.nodes import Nodes

CONTROLLERS = ("node", "node-lifecycle", "service", "route")
CLUSTER_CIDR = "10.1.0.0/16"

Kind = Literal["classic", "network"]
SETTINGS: Mapping[Kind, Mapping[str, str]] = {"classic": {}, "network": {"type": "nlb"}}
"""What Services for this kind of load balancer have: annotations without their prefix."""

_LIFETIME = timedelta(hours=6)
_LOOKS = 20
"""How often the account is looked through until nothing went meanwhile."""


class AwsEnvironment(Nodes):
    """One cluster on one account of moto. `before`: what there is besides load balancers."""

    def __init__(self, control_plane: ControlPlane, endpoint: str, directory: Path) -> None:
        kubeconfig = control_plane.kubeconfig("crash-test", ["system:masters"], _LIFETIME)
        super().__init__(Kube.from_kubeconfig(kubeconfig), CLUSTER_CIDR)
        self.control_plane = control_plane
        self.names = count(1)
        self._daemons = Daemons(
            directory,
            kubeconfig,
            cloud_name="aws",
            cloud=endpoint,
            cluster_cidr=CLUSTER_CIDR,
            controllers=CONTROLLERS,
            naming=_operation,
            mending=corrected,
        )
        self.endpoint = endpoint
        self.account = Account(endpoint)
        self.route_table = self._route_table()
        session = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name=REGION)
        acm = session.client("acm", endpoint_url=endpoint)
        self.certificate = acm.request_certificate(DomainName="shop.example.com")["CertificateArn"]
        self.before: Baseline = baseline(self.account)

    @contextlib.contextmanager
    def daemon(self, name: str, *flags: str, prelude: str = "") -> Iterator[Daemon]:
        """A daemon that is not started yet, and its proxies; killed at the end."""
        controllers = f"--controllers={','.join(CONTROLLERS)}"
        variables = {**CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}
        with self._daemons.daemon(
            Daemon,
            name,
            controllers,
            *flags,
            cloud_config=self._cloud_config,
            prelude=prelude,
            variables=variables,
        ) as made:
            yield made

    def machine(self) -> Machine:
        """A new running machine of the cluster."""
        (made,) = self.account.add_machines(1)
        return made

    def end_machine(self, machine: Machine) -> None:
        """End it, or nothing if it has ended."""
        self.account.ec2.terminate_instances(InstanceIds=[machine.id])

    def terminate(self, machine: Machine) -> None:
        """End the machine; its node is not ready afterwards."""
        self.end_machine(machine)
        self.report(machine.name, "Unknown")

    def routes(self) -> Mapping[str, str]:
        """The pod routes: the machine of each range."""
        (table,) = self.account.ec2.describe_route_tables(RouteTableIds=[self.route_table])["RouteTables"]
        return {
            route["DestinationCidrBlock"]: route["InstanceId"] for route in table["Routes"] if route.get("InstanceId")
        }

    def left(self) -> Json:
        """All that there is of load balancing; only empty values if there is nothing."""
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
        """What a daemon that is dead has left."""
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
        """The pod routes that a daemon that is dead has left."""
        for cidr in self.routes():
            self.account.ec2.delete_route(RouteTableId=self.route_table, DestinationCidrBlock=cidr)

    def _cloud_config(self, endpoint: str) -> str:
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
