"""A program with every type of the provider of `aws`."""

from __future__ import annotations

import base64
import json
from typing import Any

import pulumi
import pulumi_aws as aws

TRUST = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole"}]})
RIGHTS = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"}]}
)
USER_DATA = base64.b64encode(b"token=hunter2-hunter2").decode()


ALL = 22
"""The resources of `program`."""


def network(size: int = 1) -> tuple[aws.ec2.Vpc, list[aws.ec2.Subnet], aws.ec2.SecurityGroup]:
    vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, tags={"Name": "net"})
    gateway = aws.ec2.InternetGateway("net", vpc_id=vpc.id)
    table = aws.ec2.RouteTable("net", vpc_id=vpc.id, tags={"Name": "table"})
    aws.ec2.Route("net", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id)
    subnets = []
    for index, zone in enumerate("abc"[:size]):
        subnet = aws.ec2.Subnet(
            zone,
            vpc_id=vpc.id,
            availability_zone=f"eu-central-1{zone}",
            cidr_block=f"10.0.{index}.0/24",
            map_public_ip_on_launch=True,
        )
        aws.ec2.RouteTableAssociation(zone, route_table_id=table.id, subnet_id=subnet.id)
        subnets.append(subnet)
    group = aws.ec2.SecurityGroup("nodes", description="Nodes", vpc_id=vpc.id, tags={"Name": "nodes"})
    aws.vpc.SecurityGroupEgressRule("all", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0")
    aws.vpc.SecurityGroupIngressRule(
        "ssh", security_group_id=group.id, ip_protocol="tcp", from_port=22, to_port=22, cidr_ipv4="10.0.0.0/8"
    )
    aws.vpc.SecurityGroupIngressRule(
        "peers", security_group_id=group.id, ip_protocol="-1", referenced_security_group_id=group.id
    )
    return vpc, subnets, group


def machines(
    subnets: list[aws.ec2.Subnet], group: aws.ec2.SecurityGroup, *, kind: str = "m5.large"
) -> aws.autoscaling.Group:
    role = aws.iam.Role("node", assume_role_policy=TRUST, tags={"Name": "node"})
    policy = aws.iam.Policy("node", policy=RIGHTS, description="What nodes may")
    aws.iam.RolePolicyAttachment("node", role=role.name, policy_arn=policy.arn)
    profile = aws.iam.InstanceProfile("node", role=role.name)
    template = aws.ec2.LaunchTemplate(
        "node",
        image_id="ami-12c6146b",
        instance_type=kind,
        iam_instance_profile={"arn": profile.arn},
        user_data=pulumi.Output.secret(USER_DATA),
        vpc_security_group_ids=[group.id],
        block_device_mappings=[
            {"device_name": "/dev/xvda", "ebs": {"volume_size": 50, "volume_type": "gp3", "encrypted": "true"}}
        ],
        metadata_options={"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1},
        tag_specifications=[{"resource_type": "instance", "tags": {"Name": "node"}}],
        update_default_version=True,
    )
    return aws.autoscaling.Group(
        "node",
        min_size=2,
        max_size=2,
        desired_capacity=2,
        vpc_zone_identifiers=[subnet.id for subnet in subnets],
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
        tags=[{"key": "kubernetes.io/cluster/main", "value": "owned", "propagate_at_launch": True}],
    )


def cluster(subnets: list[aws.ec2.Subnet]) -> aws.eks.Cluster:
    role = aws.iam.Role("eks", assume_role_policy=TRUST)
    made = aws.eks.Cluster(
        "main",
        name="main",
        role_arn=role.arn,
        version="1.31",
        vpc_config={"subnet_ids": [subnet.id for subnet in subnets], "endpoint_private_access": True},
        access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
        kubernetes_network_config={"service_ipv4_cidr": "172.20.0.0/16", "ip_family": "ipv4"},
        enabled_cluster_log_types=["audit", "api"],
        tags={"Name": "main"},
    )
    issuer = made.identities.apply(lambda identities: (identities[0].oidcs or [])[0].issuer)
    aws.iam.OpenIdConnectProvider("main", url=issuer, client_id_lists=["sts.amazonaws.com"])
    return made


def program(**changes: Any) -> Any:
    def run() -> None:
        _, subnets, group = network(2)
        machines(subnets, group, **changes)
        made = cluster(subnets)
        pulumi.export("endpoint", made.endpoint)

    return run
