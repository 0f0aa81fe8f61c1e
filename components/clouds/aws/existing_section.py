"""What is there already, in the section `aws` of a stack file: a new cluster's network, or an existing one's parts."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from ...config_values import Section, matching, pattern_of

_OIDC_PROVIDER = re.compile(r"arn:aws:iam::[0-9]{12}:oidc-provider/[^\s]+")


def _id(prefix: str) -> re.Pattern[str]:
    return re.compile(rf"{prefix}-[0-9a-z]+")


_VPC, _SUBNET, _TABLE, _GROUP = map(_id, ("vpc", "subnet", "rtb", "sg"))

VpcId = Annotated[str, matching(_VPC, "vpc-…"), Field(json_schema_extra=pattern_of(_VPC.pattern))]
SubnetId = Annotated[str, matching(_SUBNET, "subnet-…"), Field(json_schema_extra=pattern_of(_SUBNET.pattern))]
RouteTableId = Annotated[str, matching(_TABLE, "rtb-…"), Field(json_schema_extra=pattern_of(_TABLE.pattern))]
SecurityGroupId = Annotated[str, matching(_GROUP, "sg-…"), Field(json_schema_extra=pattern_of(_GROUP.pattern))]
OidcProviderArn = Annotated[
    str,
    matching(_OIDC_PROVIDER, "arn:aws:iam::ACCOUNT:oidc-provider/ISSUER"),
    Field(json_schema_extra=pattern_of(_OIDC_PROVIDER.pattern)),
]


class AwsNetworkConfig(Section):
    """A VPC that is there already, for a new cluster."""

    vpc_id: VpcId = Field(description="The VPC.")
    subnets: dict[str, SubnetId] = Field(description="The subnets of the machines, by zone.", min_length=1)
    load_balancer_subnets: dict[str, SubnetId] = Field(
        default_factory=dict, description="Further subnets, by zone, such as public ones for load balancers."
    )


class AwsExistingConfig(Section):
    """Parts of an existing cluster on AWS that cannot be found by its tags."""

    oidc_provider: OidcProviderArn | None = Field(
        default=None,
        description="The ARN of the cluster's OIDC provider in IAM: the program then makes a role for the cloud"
        " controller manager's ServiceAccount. Without it the manager has the role of its machine.",
    )
    subnet_id: SubnetId | None = Field(
        default=None, description="The subnet of load balancers where neither annotations nor tags name one."
    )
    route_table_id: RouteTableId | None = Field(
        default=None, description="The route table of the pod routes, where no table has the cluster's tag."
    )
    security_group_id: SecurityGroupId | None = Field(
        default=None, description="The security group of all load balancers, instead of one for each."
    )
