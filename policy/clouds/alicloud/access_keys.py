"""Rule: no long-lived access key where pods can take roles, as on ACK (RRSA)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
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

from policy.objects import WORKLOADS, dig, each, is_exempt, schema
from policy.unknowns import first_known
from policy.workloads import Container, ccm_container, containers

_CLUSTER = "alicloud:cs/managedKubernetes:ManagedKubernetes"
_KEY = "alicloud:ram/accessKey:AccessKey"
_VARIABLES = frozenset(
    {"ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"}
)
"""By which Alibaba Cloud's own controller and its SDKs take an access key."""


def check(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report access keys of RAM users, and cloud controller managers that get one, in a stack with an ACK cluster."""
    if not any(resource.resource_type == _CLUSTER for resource in args.resources):
        args.not_applicable("the stack has no ACK cluster: elsewhere pods cannot take RAM roles")
    unknown: UnknownValueError | None = None
    for resource in args.resources:
        try:
            if why := _problem(resource, args.get_config()):
                report(why, resource.urn)
        except UnknownValueError as error:
            unknown = unknown or error
    if unknown is not None:
        raise unknown


def _problem(resource: PolicyResource, config: Mapping[str, Any]) -> str | None:
    if is_exempt(config, resource.props, resource.name):
        return None
    if resource.resource_type == _KEY:
        return "a RAM user's access key does not expire; on ACK, pods take RAM roles (RRSA)"
    if resource.resource_type not in WORKLOADS or not ccm_container(resource.props, config):
        return None
    found = first_known(partial(_variable, container) for container in containers(resource.props))
    return f"the container gets an access key by {found}; on ACK, pods take RAM roles (RRSA)" if found else None


def _variable(container: Container) -> str | None:
    names = [str(dig(variable(), "name")) for variable in each(dig(container(), "env"))]
    return next((name for name in names if name in _VARIABLES), None)


NO_ACCESS_KEYS_ON_ACK = StackValidationPolicy(
    name="ack-ccm-avoid-access-key",
    description=(
        "On ACK a ServiceAccount can take a RAM role (RRSA), whose keys last an hour. An access key of a RAM user "
        "lasts until somebody deletes it, wherever it has leaked to: the stack must not make one, nor give the CCM one."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(),
    display_name="No access keys on ACK",
    severity=Severity.HIGH,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="4.6.2, 11.3",
        specification="IRSA, RRSA or workload identity",
    ),
    tags=["alicloud", "ram"],
    remediation_steps=(
        "Set enableRrsa on the cluster, make a RAM role that trusts its OIDC provider and the CCM's ServiceAccount "
        "(components/clouds/alicloud/ram.py), and remove the key."
    ),
    url="https://www.alibabacloud.com/help/en/ack/ack-managed-and-ack-dedicated/user-guide/use-rrsa-to-authorize-pods-to-access-different-cloud-services",
)
