"""Rules: the version of a vendor's cloud controller manager matches the cluster's Kubernetes, and is known to.

The clouds' matrices decide (`PolicyCloud.ccm`). Unknown versions are a rule of their own, whose level can differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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

from cloud_controller.clouds.common.versions import Verdict
from policy import clouds
from policy.objects import WORKLOADS, dig, is_exempt, schema
from policy.workloads import containers

_MATRICES = [cloud.ccm for cloud in clouds.descriptors() if cloud.ccm]


def check(args: StackValidationArgs, report: ReportViolation, kind: str) -> None:
    """Report workloads of vendors' controllers for which the matrix's verdict is of this kind."""
    config = args.get_config()
    kubernetes = config.get("kubernetesVersion") or _version_of_cluster(args.resources)
    if not kubernetes:
        args.not_applicable(
            "unknown Kubernetes version: the stack has no managed cluster and kubernetesVersion is not set"
        )
    unknown: UnknownValueError | None = None
    for workload in args.resources:
        try:
            if workload.resource_type in WORKLOADS and not is_exempt(config, workload.props, workload.name):
                for verdict in _verdicts(workload.props, str(kubernetes)):
                    if verdict.kind == kind:
                        report(verdict.why, workload.urn)
        except UnknownValueError as error:
            unknown = unknown or error
    if unknown is not None:
        raise unknown


def _verdicts(props: Mapping[str, Any], kubernetes: str) -> Iterator[Verdict]:
    for container in containers(props):
        name, _, tag = str(dig(container(), "image") or "").partition("@")[0].rpartition(":")
        for matrix in _MATRICES:
            if tag and matrix.image.fullmatch(name):
                yield matrix.judge(tag, kubernetes)


def _version_of_cluster(resources: Iterable[PolicyResource]) -> str | None:
    versions = {kind: key for matrix in _MATRICES for kind, key in matrix.clusters.items()}
    for resource in resources:
        if resource.resource_type in versions and (found := dig(resource.props, versions[resource.resource_type])):
            return str(found)
    return None


_SETTINGS = schema(
    kubernetesVersion={
        "type": "string",
        "default": "",
        "description": "The cluster's Kubernetes version; by default that of the stack's managed cluster.",
    },
)
_FRAMEWORK = PolicyComplianceFramework(
    name="Kubernetes production checklist",
    version="002",
    reference="4.1, 5.1, 11.1, 12.1",
    specification="The CCM's version fits the cluster's",
)


CCM_FITS_KUBERNETES = StackValidationPolicy(
    name="ccm-workload-fit-kubernetes",
    description=(
        "A vendor's cloud controller manager supports certain minor versions of Kubernetes. With another one it is "
        "untested, and may use an API that the cluster no longer has."
    ),
    validate=lambda args, report: check(args, report, "wrong"),
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=_SETTINGS,
    display_name="The CCM fits the cluster's version",
    severity=Severity.MEDIUM,
    framework=_FRAMEWORK,
    tags=["versions"],
    remediation_steps=(
        "Run the version that the matrix (`versions.py` of the cloud in cloud_controller/clouds) has for the cluster, "
        "and change it together with the cluster's version."
    ),
    url="https://kubernetes.io/releases/version-skew-policy/#cloud-controller-manager",
)

CCM_VERSION_KNOWN = StackValidationPolicy(
    name="ccm-workload-use-known-version",
    description=(
        "The matrix has no row for the versions of cloud controller manager and cluster, so nobody has said that they "
        "work together: they do not pass rule ccm-workload-fit-kubernetes, they are only not known to be wrong."
    ),
    validate=lambda args, report: check(args, report, "unknown"),
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=_SETTINGS,
    display_name="The CCM's version is in the matrix",
    severity=Severity.LOW,
    framework=_FRAMEWORK,
    tags=["versions"],
    remediation_steps=(
        "Read the vendor's release notes; then add the row with its date and source to the matrix, or use versions "
        "that it has."
    ),
    url="https://kubernetes.io/releases/version-skew-policy/#cloud-controller-manager",
)
