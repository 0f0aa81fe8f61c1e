"""Rule: the version of AWS's own cloud controller manager matches the cluster's Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    PolicyResource,
    ReportViolation,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError

from cloud_controller.clouds.aws.versions import IMAGE, judge
from policy.objects import WORKLOADS, dig, is_exempt, schema
from policy.workloads import containers

_CLUSTER = "aws:eks/cluster:Cluster"


def check(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report workloads of AWS's controller whose version is not the one that the matrix has for the cluster."""
    config = args.get_config()
    kubernetes = config.get("kubernetesVersion") or _version_of_eks(args.resources)
    if not kubernetes:
        args.not_applicable("unknown Kubernetes version: the stack has no EKS cluster and kubernetesVersion is not set")
    unknown: UnknownValueError | None = None
    for workload in args.resources:
        try:
            if workload.resource_type in WORKLOADS and not is_exempt(config, workload.props, workload.name):
                _check_workload(workload, str(kubernetes), config, report)
        except UnknownValueError as error:
            unknown = unknown or error
    if unknown is not None:
        raise unknown


def _check_workload(
    workload: PolicyResource, kubernetes: str, config: Mapping[str, Any], report: ReportViolation
) -> None:
    for container in containers(workload.props):
        name, _, tag = str(dig(container(), "image") or "").partition("@")[0].partition(":")
        if name != IMAGE or not tag:
            continue
        verdict = judge(tag, kubernetes)
        if verdict.kind == "wrong" or (verdict.kind == "unknown" and config.get("refuseUnknown")):
            report(verdict.why, workload.urn)


def _version_of_eks(resources: Iterable[PolicyResource]) -> str | None:
    for resource in resources:
        if resource.resource_type == _CLUSTER and dig(resource.props, "version"):
            return str(dig(resource.props, "version"))
    return None


CCM_FITS_KUBERNETES = StackValidationPolicy(
    name="ccm-workload-fit-kubernetes",
    description=(
        "AWS's own cloud controller manager follows Kubernetes' minor versions. A different minor version is untested "
        "with the cluster, and may use an API that the cluster no longer has."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(
        kubernetesVersion={
            "type": "string",
            "default": "",
            "description": "The cluster's Kubernetes version; by default that of the stack's EKS cluster.",
        },
        refuseUnknown={
            "type": "boolean",
            "default": False,
            "description": "Also report versions newer than any in the compatibility matrix.",
        },
    ),
    display_name="The CCM fits the cluster's version",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="11.1, 12.1",
        specification="The CCM's version fits the cluster's",
    ),
    tags=["aws", "versions"],
    remediation_steps=(
        "Run the version that the matrix (cloud_controller/clouds/aws/versions.py) has for the cluster: set "
        "cloud-controller:aws.ccmVersion in the stack file together with kubernetesVersion."
    ),
    url="https://github.com/kubernetes/cloud-provider-aws#compatibility-with-kubernetes",
)
