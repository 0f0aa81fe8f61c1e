"""A stack on a simulated AWS, used like a user does and inspected through AWS's API and the cluster's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from cloud_controller.kube import Kube
from local.aws.account import client
from local.aws.get_token import token
from local.aws.site import AwsSite
from tests.e2e.local_stack import ROOT, RUN_SECONDS, LocalStack

STACK, REGION = "aws-local", "eu-central-1"


class AwsStack:
    """Stack `aws-local` in a state folder of the test's own."""

    def __init__(self, state: Path) -> None:
        self.stack = LocalStack.copied(state, STACK)
        self.site = AwsSite(state, STACK, REGION)

    def aws(self, service: str) -> Any:
        """A boto3 client with the stack's key."""
        return client(self.site.endpoint, REGION, *self.site.credentials, service)

    @property
    def kube(self) -> Kube:
        """The stack's cluster, as its creator; made again because a token soon expires."""
        return Kube.from_kubeconfig(self.kubeconfig)

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig of its creator, whose token soon expires."""
        cluster = self.aws("eks").describe_cluster(name=STACK)["cluster"]
        server = {"server": cluster["endpoint"], "certificate-authority-data": cluster["certificateAuthority"]["data"]}
        bearer = token(STACK, self.site.endpoint, REGION, *self.site.credentials)
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": STACK, "cluster": server}],
                "users": [{"name": "me", "user": {"token": bearer}}],
                "contexts": [{"name": STACK, "context": {"cluster": STACK, "user": "me"}}],
                "current-context": STACK,
            }
        )

    def instances(self) -> dict[str, dict[str, Any]]:
        """The instances that are not terminated, by the name of their node."""
        reservations = self.aws("ec2").describe_instances()["Reservations"]
        there = [each for reservation in reservations for each in reservation["Instances"]]
        return {each["PrivateDnsName"]: each for each in there if each["State"]["Name"] != "terminated"}

    def ids(self) -> set[str]:
        """The ids of the running instances."""
        return {each["InstanceId"] for each in self.instances().values() if each["State"]["Name"] == "running"}

    def routes(self) -> dict[str, str]:
        """The target instance of each route of all route tables, by destination."""
        tables = self.aws("ec2").describe_route_tables()["RouteTables"]
        routes = [route for table in tables for route in table["Routes"]]
        return {each["DestinationCidrBlock"]: each["InstanceId"] for each in routes if each.get("InstanceId")}

    def load_balancer(self, service: str) -> dict[str, Any] | None:
        """The network load balancer of a Service in namespace default."""
        found = [
            each
            for each in self.aws("elbv2").describe_load_balancers()["LoadBalancers"]
            if each["LoadBalancerName"].startswith(f"k8s-default-{service}-")
        ]
        return found[0] if found else None

    def classic_load_balancer(self, service: str) -> dict[str, Any] | None:
        """The classic load balancer of a Service in namespace default."""
        found = [
            each
            for each in self.aws("elb").describe_load_balancers()["LoadBalancerDescriptions"]
            if each["LoadBalancerName"].startswith(f"k8s-default-{service}-")
        ]
        return found[0] if found else None

    def target_groups(self, service: str) -> list[dict[str, Any]]:
        """The target groups of a Service, with or without a load balancer."""
        groups = self.aws("elbv2").describe_target_groups()["TargetGroups"]
        return [each for each in groups if each["TargetGroupName"].startswith(f"k8s-default-{service}-")]

    def targets(self, service: str) -> set[str]:
        """The instances that every target group of a Service has; an empty set while they differ."""
        elbv2 = self.aws("elbv2")
        registered = [
            {target["Target"]["Id"] for target in health["TargetHealthDescriptions"]}
            for group in self.target_groups(service)
            for health in [elbv2.describe_target_health(TargetGroupArn=group["TargetGroupArn"])]
        ]
        return registered[0] if registered and all(each == registered[0] for each in registered) else set()

    def load_balancer_attributes(self, service: str) -> dict[str, str]:
        """The attributes of a Service's network load balancer, by AWS's keys."""
        balancer = self.load_balancer(service)
        assert balancer is not None
        answer = self.aws("elbv2").describe_load_balancer_attributes(LoadBalancerArn=balancer["LoadBalancerArn"])
        return {each["Key"]: each["Value"] for each in answer["Attributes"]}

    def down(self, *options: str) -> str:
        """Run `down`; returns its output."""
        command = [sys.executable, "-m", "local", "down", "--stack", STACK, "--state", str(self.stack.state), *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stderr

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs as in `status`, secrets masked."""
        outputs: dict[str, Any] = json.loads(self.stack.run("status", "--json"))["outputs"]
        return outputs
