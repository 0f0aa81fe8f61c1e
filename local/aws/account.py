"""Lists the contents of an AWS account through its API: for `status`, and for `down`'s check."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import boto3
from botocore.config import Config

Json = dict[str, Any]

PROCESS_ENDED = "Server.InternalError"
"""Why an instance was stopped whose process ended by itself: AWS's reason for an instance lost by its host."""

CLUSTER_TAG = "kubernetes.io/cluster/"
"""A tag's key: the prefix of the name of the cluster that an instance belongs to."""

# By the name for people: service, operation, key of the answer, field of the id. What AWS has in every account (the
# default VPC and its contents, its own policies) is left out below.
KINDS = {
    "instance": ("ec2", "describe_instances", "Reservations", "InstanceId"),
    "NAT gateway": ("ec2", "describe_nat_gateways", "NatGateways", "NatGatewayId"),
    "network interface": ("ec2", "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    "address": ("ec2", "describe_addresses", "Addresses", "AllocationId"),
    "volume": ("ec2", "describe_volumes", "Volumes", "VolumeId"),
    "launch template": ("ec2", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    "security group": ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
    "route table": ("ec2", "describe_route_tables", "RouteTables", "RouteTableId"),
    "subnet": ("ec2", "describe_subnets", "Subnets", "SubnetId"),
    "internet gateway": ("ec2", "describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    "VPC": ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    "auto-scaling group": (
        *("autoscaling", "describe_auto_scaling_groups"),
        *("AutoScalingGroups", "AutoScalingGroupName"),
    ),
    "EKS cluster": ("eks", "list_clusters", "clusters", ""),
    "load balancer": ("elbv2", "describe_load_balancers", "LoadBalancers", "LoadBalancerName"),
    "target group": ("elbv2", "describe_target_groups", "TargetGroups", "TargetGroupName"),
    "classic load balancer": ("elb", "describe_load_balancers", "LoadBalancerDescriptions", "LoadBalancerName"),
    "role": ("iam", "list_roles", "Roles", "RoleName"),
    "policy": ("iam", "list_policies", "Policies", "PolicyName"),
    "instance profile": ("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    "OIDC provider": ("iam", "list_open_id_connect_providers", "OpenIDConnectProviderList", "Arn"),
}
_ARGUMENTS = {"list_policies": {"Scope": "Local"}}


class Account:
    """An account, by the endpoint of its services and a key; one region of it."""

    def __init__(self, endpoint: str, region: str, access_key: str, secret_key: str) -> None:
        self._client = partial(client, endpoint, region, access_key, secret_key)

    def left(self) -> list[str]:
        """Everything that was made and not deleted, as `kind id`; a new account has nothing."""
        found = {kind: list(self._pages(*source[:3])) for kind, source in KINDS.items()}
        default = {each["VpcId"] for each in found["VPC"] if each["IsDefault"]}
        found["instance"] = [
            each
            for reservation in found["instance"]
            for each in reservation["Instances"]
            if each["State"]["Name"] != "terminated"
        ]
        found["NAT gateway"] = [each for each in found["NAT gateway"] if each["State"] != "deleted"]
        return [
            f"{kind} {each[field] if field else each}"
            for kind, (*_, field) in KINDS.items()
            for each in found[kind]
            if not (isinstance(each, dict) and _vpcs(each) & default)
        ]

    def clusters(self) -> list[Json]:
        """The clusters of EKS, shortened to what people need."""
        client = self._client("eks")
        described = [client.describe_cluster(name=name)["cluster"] for name in client.list_clusters()["clusters"]]
        return [
            {
                "name": each["name"],
                "state": each["status"],
                "state_reason": "; ".join(issue["message"] for issue in each.get("health", {}).get("issues", [])),
                "version": each["version"],
                "endpoint": each.get("endpoint") or None,
            }
            for each in described
        ]

    def machines(self) -> list[Json]:
        """The instances that are not terminated."""
        reservations = self._pages("ec2", "describe_instances", "Reservations")
        instances = [each for reservation in reservations for each in reservation["Instances"]]
        return [
            {
                "id": each["InstanceId"],
                "name": next((tag["Value"] for tag in each.get("Tags", []) if tag["Key"] == "Name"), ""),
                "node_name": each["PrivateDnsName"],
                "cluster": _cluster(each),
                "state": each["State"]["Name"],
                "state_reason": each.get("StateReason", {}).get("Message") or None,
                "crashed": _crashed(each),
                "address": each.get("PrivateIpAddress"),
                "zone": each["Placement"]["AvailabilityZone"],
                "type": each["InstanceType"],
            }
            for each in instances
            if each["State"]["Name"] != "terminated"
        ]

    def load_balancers(self) -> list[Json]:
        """Load balancers of both generations, and the number of targets of each. They forward nothing here."""
        v2 = self._client("elbv2")
        network = [
            {
                "name": each["LoadBalancerName"],
                "type": each["Type"],
                "address": each["DNSName"],
                "listeners": [
                    f"{listener['Protocol']} {listener['Port']}"
                    for listener in v2.describe_listeners(LoadBalancerArn=each["LoadBalancerArn"])["Listeners"]
                ],
                "targets": self._targets(each["LoadBalancerArn"]),
            }
            for each in self._pages("elbv2", "describe_load_balancers", "LoadBalancers")
        ]
        classic = [
            {
                "name": each["LoadBalancerName"],
                "type": "classic",
                "address": each["DNSName"],
                "listeners": [
                    f"{listener['Listener']['Protocol']} {listener['Listener']['LoadBalancerPort']}"
                    for listener in each["ListenerDescriptions"]
                ],
                "targets": len(each["Instances"]),
            }
            for each in self._pages("elb", "describe_load_balancers", "LoadBalancerDescriptions")
        ]
        return sorted(network + classic, key=lambda each: str(each["name"]))

    def start(self, ids: list[str]) -> None:
        """Start stopped instances."""
        if ids:
            self._client("ec2").start_instances(InstanceIds=ids)

    def _targets(self, load_balancer: str) -> int:
        """The targets of any of its target groups."""
        v2 = self._client("elbv2")
        groups = v2.describe_target_groups(LoadBalancerArn=load_balancer)["TargetGroups"]
        health = (v2.describe_target_health(TargetGroupArn=group["TargetGroupArn"]) for group in groups)
        return len({target["Target"]["Id"] for each in health for target in each["TargetHealthDescriptions"]})

    def _pages(self, service: str, operation: str, key: str) -> Iterator[Any]:
        client = self._client(service)
        arguments = _ARGUMENTS.get(operation, {})
        if client.can_paginate(operation):
            for page in client.get_paginator(operation).paginate(**arguments):
                yield from page[key]
        else:
            yield from getattr(client, operation)(**arguments)[key]


@cache
def client(endpoint: str, region: str, access_key: str, secret_key: str, service: str) -> Any:
    """boto3's client of a service, without retries; cached, because making one takes longer than most calls."""
    # A proxy from the environment cannot reach this machine's loopback.
    settings = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, proxies={})
    # The service is a variable, so boto3's types can't tell which client it is.
    return _session(region, access_key, secret_key).client(service, endpoint_url=endpoint, config=settings)  # type: ignore[call-overload]


@cache
def _session(region: str, access_key: str, secret_key: str) -> boto3.session.Session:
    return boto3.session.Session(access_key, secret_key, region_name=region)


def _vpcs(thing: Json) -> set[str]:
    """The VPCs that an object is, is in, or is attached to."""
    return {thing["VpcId"]} if thing.get("VpcId") else {each.get("VpcId", "") for each in thing.get("Attachments", [])}


def _cluster(instance: Json) -> str | None:
    keys = (tag["Key"] for tag in instance.get("Tags", []))
    return next((key.removeprefix(CLUSTER_TAG) for key in keys if key.startswith(CLUSTER_TAG)), None)


def _crashed(instance: Json) -> bool:
    code = instance.get("StateReason", {}).get("Code")
    return bool(instance["State"]["Name"] == "stopped" and code == PROCESS_ENDED)
