"""Rule: AWS's own cloud controller manager is of the version that goes with the cluster's Kubernetes."""

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
    """Report workloads of AWS's controller whose version is another one than the matrix has for the cluster."""
    config = args.get_config()
    kubernetes = config.get("kubernetesVersion") or _version_of_eks(args.resources)
    if not kubernetes:
        args.not_applicable("the stack does not say its Kubernetes version: neither by EKS nor by kubernetesVersion")
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
        "AWS's own cloud controller manager follows Kubernetes' minor versions: one of another minor version is "
        "tested by nobody, and may speak an API that the cluster has no more."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(
        kubernetesVersion={
            "type": "string",
            "default": "",
            "description": "The cluster's Kubernetes version; that of the stack's EKS cluster if not given.",
        },
        refuseUnknown={
            "type": "boolean",
            "default": False,
            "description": "Report what the matrix does not know, too: versions that are newer than it.",
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
        "Run the version of the matrix (cloud_controller/clouds/aws/versions.py) that goes with the cluster: "
        "cloud-controller:aws.ccmVersion in the stack file, changed together with kubernetesVersion."
    ),
    url="https://github.com/kubernetes/cloud-provider-aws#compatibility-with-kubernetes",
)
