"""The rules for AWS, and the meaning of its annotations."""

from __future__ import annotations

import re

from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.versions import IMAGE, judge
from policy.clouds.aws.audit import CALLS_ARE_AUDITED
from policy.clouds.aws.components import COMPONENTS
from policy.clouds.aws.config import check, public_apis
from policy.clouds.aws.egress import limits_egress
from policy.clouds.aws.iam import POLICIES_WITHOUT_WILDCARDS
from policy.clouds.aws.meaning import MEANING
from policy.clouds.aws.subnets import SUBNETS_HAVE_ROLES
from policy.clouds.interface import CcmMatrix, Mark, PolicyCloud, Roles


def _of(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


CLOUD = PolicyCloud(
    name="aws",
    policies=(POLICIES_WITHOUT_WILDCARDS, SUBNETS_HAVE_ROLES, CALLS_ARE_AUDITED),
    ccm=CcmMatrix(image=re.compile(re.escape(IMAGE)), clusters={"aws:eks/cluster:Cluster": "version"}, judge=judge),
    roles=Roles(
        where={
            "aws:eks/cluster:Cluster": "on EKS, pods take IAM roles (IRSA)",
            "aws:ec2/launchTemplate:LaunchTemplate": "machines of EC2 have IAM roles (instance profiles)",
            "aws:ec2/instance:Instance": "machines of EC2 have IAM roles (instance profiles)",
        },
        keys=frozenset({"aws:iam/accessKey:AccessKey"}),
        names=frozenset({"awsaccesskeyid", "awssecretaccesskey"}),
    ),
    check_config=check,
    public_apis=public_apis,
    internal=(Mark(_of("internal")), Mark(_of("scheme"), ("internal",))),
    limited_elsewhere=(Mark(_of("security_groups")),),
    further_clients=(Mark(_of("security_group_prefix_lists")),),
    limits_egress=limits_egress,
    components=COMPONENTS,
    meaning=MEANING,
)
