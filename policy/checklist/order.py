"""Rule: a destroy deletes a LoadBalancer Service before the only controller that can delete its load balancer."""

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

from policy.checklist.load_balancers import OUR_CLASSES
from policy.objects import SERVICE, WORKLOADS, ccm_schema, dig, is_exempt, object_name
from policy.workloads import ccm_container


def check(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report each LoadBalancer Service that does not depend on its cluster's CCM workload, if the stack has one."""
    config = args.get_config()
    managers, unsure = _managers(args.resources, config)
    required = bool(config.get("requireController"))
    if not managers and unsure is None and not required:
        args.not_applicable("no cloud controller manager in this stack: it runs elsewhere, or not at all")
    unknown: UnknownValueError | None = None
    for service in args.resources:
        try:
            if _is_balanced(service, config) and not is_exempt(config, service.props, service.name):
                _check_service(service, managers, unsure, required, report)
        except UnknownValueError as error:
            # Judge the other Services all the same; this one makes the rule "not evaluated".
            unknown = unknown or error
    if unknown is not None:
        raise unknown


def _check_service(
    service: PolicyResource,
    managers: Iterable[PolicyResource],
    unsure: UnknownValueError | None,
    required: bool,
    report: ReportViolation,
) -> None:
    reached = _reachable(service)
    candidates = [manager for manager in managers if _cluster(manager) == _cluster(service)]
    if any(manager.urn in reached for manager in candidates):
        return
    if unsure is not None:
        raise unsure  # A workload of unknown image may be the manager that the Service depends on.
    if candidates:
        names = ", ".join(object_name(manager.props) for manager in candidates)
        missing = f"does not depend on the cloud controller manager {names}"
    elif required:
        missing = "has no cloud controller manager in this stack"
    else:
        return
    report(f"Service {object_name(service.props)} {missing}", service.urn)


def _managers(
    resources: Iterable[PolicyResource], config: Mapping[str, Any]
) -> tuple[list[PolicyResource], UnknownValueError | None]:
    """The CCM workloads, and the unknown value that hides whether another workload is one."""
    found, unsure = [], None
    for resource in resources:
        if resource.resource_type not in WORKLOADS:
            continue
        try:
            if ccm_container(resource.props, config) is not None:
                found.append(resource)
        except UnknownValueError as error:
            unsure = unsure or error
    return found, unsure


def _is_balanced(resource: PolicyResource, config: Mapping[str, Any]) -> bool:
    """Whether a CCM makes this resource's load balancer: Services of another class are another controller's."""
    if resource.resource_type != SERVICE or dig(resource.props, "spec", "type") != "LoadBalancer":
        return False
    balancer_class = dig(resource.props, "spec", "loadBalancerClass")
    return not balancer_class or balancer_class in (*OUR_CLASSES, *(config.get("loadBalancerClasses") or ()))


def _reachable(resource: PolicyResource) -> set[str]:
    """The URNs of all that is deleted after this resource: dependencies, and parents with theirs, transitively."""
    seen: set[str] = set()
    waiting = [resource]
    while waiting:
        current = waiting.pop()
        after = [*current.dependencies, *(d for urns in current.property_dependencies.values() for d in urns)]
        if current.parent is not None:
            after.append(current.parent)
        for other in after:
            if other.urn not in seen:
                seen.add(other.urn)
                waiting.append(other)
    return seen


def _cluster(resource: PolicyResource) -> str:
    return resource.provider.urn if resource.provider is not None else ""


LOAD_BALANCERS_DEPEND_ON_CCM = StackValidationPolicy(
    name="lb-service-depend-on-ccm",
    description=(
        "A LoadBalancer Service must depend on the cloud controller manager. Otherwise a destroy may delete the "
        "manager first, and the Service's finalizer then keeps the Service, its namespace and its load balancer for "
        "ever."
    ),
    validate=check,
    enforcement_level=EnforcementLevel.MANDATORY,
    config_schema=ccm_schema(
        loadBalancerClasses={
            "type": "array",
            "items": {"type": "string"},
            "default": [],
            "description": (
                f"spec.loadBalancerClass values that the CCM serves, beside {', '.join(OUR_CLASSES)}; the rule "
                "ignores Services of other classes."
            ),
        },
        requireController={
            "type": "boolean",
            "default": False,
            "description": "Also report LoadBalancer Services of a stack that has no cloud controller manager.",
        },
    ),
    display_name="LoadBalancer Services depend on the CCM",
    severity=Severity.HIGH,
    framework=PolicyComplianceFramework(
        name="Kubernetes production checklist",
        version="002",
        reference="2.2",
        specification="Life cycle of load balancers",
    ),
    tags=["destroy"],
    remediation_steps=(
        "Pass the CCM's component (or its workload) in depends_on of the Service, or of the component that makes it. "
        "If a load balancer is already stuck, start the manager again, or delete the load balancer in the cloud and "
        "then remove the finalizer service.kubernetes.io/load-balancer-cleanup from the Service."
    ),
    url="https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/",
)
