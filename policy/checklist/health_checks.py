"""Rule: load balancers check the health of their backends."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)

from policy.checklist.load_balancers import UNCHECKED, check_service, marked, marks_of, marks_setting
from policy.clouds.interface import Mark
from policy.objects import schema


def check(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report a LoadBalancer Service with an annotation that switches the health check off."""
    marks = [*UNCHECKED, *marks_of(args.get_config().get("offAnnotations"))]
    check_service(args, report, partial(_problem, args, marks))


def _problem(args: ResourceValidationArgs, marks: Iterable[Mark]) -> str | None:
    off = marked(args.props, marks)
    return f"the health check is switched off by annotation {off}" if off else None


BALANCERS_CHECK_HEALTH = ResourceValidationPolicy(
    name="lb-service-check-health",
    description=(
        "A load balancer must check the health of its backends. Otherwise it keeps sending connections to a machine "
        "that is broken or drained, and they fail."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.ADVISORY,
    config_schema=schema(
        offAnnotations=marks_setting("Further annotations that switch the health check off: values by name."),
    ),
    display_name="Load balancers check health",
    severity=Severity.MEDIUM,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="2.2, 11.2",
        specification="Health check of the backends",
    ),
    tags=["availability"],
    remediation_steps=(
        "Remove the annotation: the cloud then checks by TCP, or asks the node's proxy with externalTrafficPolicy "
        "Local. For UDP, name a port that answers, if the cloud has an annotation for that."
    ),
    url="https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/",
)
