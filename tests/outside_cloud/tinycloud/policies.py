"""tinycloud for the rules: one rule of its own, and what its annotation means."""

from __future__ import annotations

from pulumi_policy import EnforcementLevel, ReportViolation, ResourceValidationArgs, ResourceValidationPolicy

from policy.clouds.interface import Mark, PolicyCloud
from tinycloud.annotations import PREFIX


def _check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if args.resource_type == "tinycloud:index:Cluster" and args.name == "nameless":
        report("the cluster has no name", None)


CLOUD = PolicyCloud(
    name="tiny",
    policies=(
        ResourceValidationPolicy(
            name="tiny-cluster-has-name",
            description="Clusters have names.",
            validate=_check,
            enforcement_level=EnforcementLevel.ADVISORY,
        ),
    ),
    internal=(Mark(f"{PREFIX}scheme", ("internal",)),),
)
