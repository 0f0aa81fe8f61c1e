"""The rules for AWS, and the meaning of its annotations."""

from __future__ import annotations

from cloud_controller.clouds.aws.annotations import CATALOGUE
from policy.clouds.aws.iam import POLICIES_WITHOUT_WILDCARDS
from policy.clouds.aws.subnets import SUBNETS_HAVE_ROLES
from policy.clouds.aws.versions import CCM_FITS_KUBERNETES
from policy.clouds.interface import Mark, PolicyCloud


def _of(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


CLOUD = PolicyCloud(
    name="aws",
    policies=(CCM_FITS_KUBERNETES, POLICIES_WITHOUT_WILDCARDS, SUBNETS_HAVE_ROLES),
    config_files=("aws",),
    internal=(Mark(_of("internal")), Mark(_of("scheme"), ("internal",))),
    limited_elsewhere=(Mark(_of("security_groups")),),
    further_clients=(Mark(_of("security_group_prefix_lists")),),
)
