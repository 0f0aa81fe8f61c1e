"""Addresses inside the VPC of the APIs of AWS that the CCM calls, so that its calls do not take the internet."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from .settings import tags

APIS = ("ec2", "elasticloadbalancing", "sts")
HTTPS = 443


def make(
    name: str,
    region: str,
    vpc: aws.ec2.Vpc,
    subnet_ids: Sequence[pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """An interface endpoint for each API, one address in each of these subnets; everything in the VPC may use it.

    By private DNS, the APIs' usual names lead to it. What calls them needs all that is returned.
    """
    full = f"{name}-endpoints"
    group = aws.ec2.SecurityGroup(
        full, description=f"Endpoints of {name}", vpc_id=vpc.id, egress=[], tags=tags(full), opts=opts
    )
    rule = aws.vpc.SecurityGroupIngressRule(
        full,
        security_group_id=group.id,
        cidr_ipv4=vpc.cidr_block,
        ip_protocol="tcp",
        from_port=HTTPS,
        to_port=HTTPS,
        tags=tags(full),
        opts=opts,
    )
    endpoints = [
        aws.ec2.VpcEndpoint(
            f"{name}-{api}",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{region}.{api}",
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=[*subnet_ids],
            security_group_ids=[group.id],
            tags=tags(f"{name}-{api}"),
            opts=opts,
        )
        for api in APIS
    ]
    return [rule, *endpoints]
