"""A real API server and moto, for daemons of cloud `aws` that are killed again and again.

Behind moto's instances no kubelet runs; its load balancers forward nothing.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from datetime import timedelta
from email.message import Message
from ipaddress import IPv4Network
from itertools import count
from pathlib import Path

import boto3
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from benchmarks.aws.account import CLUSTER_ID, CLUSTER_TAG, CREDENTIALS, KEY, REGION, Account, Machine
from benchmarks.aws.moto import simulator
from benchmarks.aws.moto_gaps import corrected
from benchmarks.aws.proxy import operation
from cloud_controller.clouds.aws.config import SERVICES, Config, ServiceOverride, render
from cloud_controller.controllers.nodes import UNINITIALIZED_TAINT
from cloud_controller.kube import NODES, Kube, Object, PatchType
from local.control_plane.components import CONTROLLER_MANAGER, SCHEDULER
from local.control_plane.control_plane import ControlPlane
from tests.compatibility.aws_left import Baseline, baseline, found
from tests.control_planes import running_control_plane
from tests.crash.control_plane import component
from tests.crash.daemon import Daemon, Daemons, Json

CONTROLLERS = ("node", "node-lifecycle", "service", "route")
CLUSTER_CIDR = "10.1.0.0/16"

_LIFETIME = timedelta(hours=6)
_LOOKS = 20
"""How often the account is looked through until nothing went meanwhile."""


class AwsEnvironment:
    """One cluster on one account of moto. `before`: what there is besides load balancers."""

    def __init__(self, control_plane: ControlPlane, endpoint: str, directory: Path) -> None:
        kubeconfig = control_plane.kubeconfig("crash-test", ["system:masters"], _LIFETIME)
        self.control_plane = control_plane
        self.kube = Kube.from_kubeconfig(kubeconfig)
        self.endpoint = endpoint
        self.account = Account(endpoint)
        self.route_table = self._route_table()
        session = boto3.Session(aws_access_key_id=KEY, aws_secret_access_key=KEY, region_name=REGION)
        acm = session.client("acm", endpoint_url=endpoint)
        self.certificate = acm.request_certificate(DomainName="shop.example.com")["CertificateArn"]
        self.before: Baseline = baseline(self.account)
        self.names = count(1)
        self._pod_cidrs = IPv4Network(CLUSTER_CIDR).subnets(new_prefix=24)
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

    @contextlib.contextmanager
    def daemon(self, name: str, *flags: str, prelude: str = "") -> Iterator[Daemon]:
        """A daemon that is not started yet, and its proxies; killed at the end."""
        controllers = f"--controllers={','.join(CONTROLLERS)}"
        variables = {**CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true"}
        with self._daemons.daemon(
            Daemon, name, controllers, *flags, cloud_config=self._config, prelude=prelude, variables=variables
        ) as made:
            yield made

    def _config(self, endpoint: str) -> str:
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

    # ------------------------------------------------------------------------------------------------------ objects

    def machine(self) -> Machine:
        """A running instance of the cluster."""
        (made,) = self.account.add_machines(1)
        return made

    def register(self, machine: Machine, *, pod_cidr: bool = True) -> None:
        """What a kubelet with an external cloud does first, and the pod range that the cluster gives the node."""
        node: Object = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": machine.name, "labels": {"kubernetes.io/hostname": machine.name}},
            "spec": {
                "providerID": machine.provider_id,
                "taints": [{"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}],
            },
        }
        self.kube.create(NODES, node)
        self.report(machine, "True")
        if pod_cidr:
            self.give_pod_cidr(machine)

    def give_pod_cidr(self, machine: Machine) -> None:
        """What kube-controller-manager does for a new node."""
        cidr = str(next(self._pod_cidrs))
        patch = {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}}
        self.kube.patch(NODES, machine.name, patch, type=PatchType.STRATEGIC)

    def report(self, machine: Machine, ready: str) -> None:
        """What the node's `Ready` condition says from now on."""
        patch = {"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": "test"}]}}
        self.kube.patch(NODES, machine.name, patch, type=PatchType.STRATEGIC, subresource="status")

    def terminate(self, machine: Machine) -> None:
        """End the instance; its node is not ready afterwards."""
        self.account.ec2.terminate_instances(InstanceIds=[machine.id])
        self.report(machine, "Unknown")

    def routes(self) -> Mapping[str, str]:
        """The pod routes of the table: the instance of each range."""
        (table,) = self.account.ec2.describe_route_tables(RouteTableIds=[self.route_table])["RouteTables"]
        return {
            route["DestinationCidrBlock"]: route["InstanceId"] for route in table["Routes"] if route.get("InstanceId")
        }

    def left(self) -> Json:
        """All that there is of load balancing."""
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

    def _route_table(self) -> str:
        ec2 = self.account.ec2
        table = ec2.create_route_table(VpcId=self.account.vpc)["RouteTable"]["RouteTableId"]
        ec2.create_tags(Resources=[table], Tags=[{"Key": CLUSTER_TAG, "Value": "owned"}])
        for subnet in self.account.private:
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
        return table


@contextlib.contextmanager
def aws_environment(directory: Path) -> Iterator[AwsEnvironment]:
    """One, until the block ends.

    Nobody but daemons and tests writes to the cluster: kube-controller-manager and scheduler sleep, so that the order
    of calls is theirs alone.
    """
    moto = directory / "moto"
    moto.mkdir()
    with (
        running_control_plane(directory / "control-plane") as control_plane,
        simulator(moto) as simulated,
        _asleep(control_plane),
    ):
        # Not moto itself: where two threads of its own meet, it answers 500, to daemons and tests alike.
        yield AwsEnvironment(control_plane, simulated.endpoint, directory)


@contextlib.contextmanager
def _asleep(control_plane: ControlPlane) -> Iterator[None]:
    sleepers = [component(control_plane.directory, name) for name in (CONTROLLER_MANAGER, SCHEDULER)]
    for process in sleepers:
        process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in sleepers:
            process.signal(signal.SIGCONT)


def _operation(_path: str, headers: Message, body: bytes) -> str:
    return operation(headers, body)
