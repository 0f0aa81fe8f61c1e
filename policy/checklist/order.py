"""Rule: a destroy deletes a LoadBalancer Service before the only controller that can delete its load balancer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from pulumi_policy.proxy import UnknownValueError

from policy.checklist.load_balancers import OUR_CLASSES, is_balanced
from policy.objects import dig, object_name
from policy.rules import HIGH, MANDATORY, Stack, StackRule, setting
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem
from policy.workloads import DAEMONS, IMAGES, ccm_container


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Each LoadBalancer Service that does not depend on its cluster's CCM workload, if the stack has one."""
    managers, unsure = _managers(stack)
    required = bool(stack.config.get("requireController"))
    if not managers and unsure is None and not required:
        stack.not_applicable("no cloud controller manager in this stack: it runs elsewhere, or not at all")
    for service in stack.of(SERVICE):
        yield service, partial(_problem, service, managers, unsure, required)


def _problem(
    service: Subject, managers: Iterable[Subject], unsure: UnknownValueError | None, required: bool
) -> str | None:
    if not _is_served(service):
        return None
    reached = _reachable(service)
    candidates = [manager for manager in managers if manager.cluster == service.cluster]
    if any(manager.urn in reached for manager in candidates):
        return None
    if unsure is not None:
        raise unsure  # A workload of unknown image may be the manager that the Service depends on.
    if candidates:
        names = ", ".join(object_name(manager.props) for manager in candidates)
        missing = f"does not depend on the cloud controller manager {names}"
    elif required:
        missing = "has no cloud controller manager in this stack"
    else:
        return None
    return f"Service {object_name(service.props)} {missing}"


def _managers(stack: Stack) -> tuple[list[Subject], UnknownValueError | None]:
    """The CCM workloads, and the unknown value that hides whether another workload is one."""
    found, unsure = [], None
    for workload in stack.of(*DAEMONS):
        try:
            # A patch's end leaves the manager that it patches.
            if not workload.is_patch and ccm_container(workload) is not None:
                found.append(workload)
        except UnknownValueError as error:
            unsure = unsure or error
    return found, unsure


def _is_served(service: Subject) -> bool:
    """Whether a CCM makes this Service's load balancer: Services of another class are another controller's."""
    if not is_balanced(service.props):
        return False
    balancer_class = dig(service.props, "spec", "loadBalancerClass")
    return not balancer_class or balancer_class in (*OUR_CLASSES, *(service.config.get("loadBalancerClasses") or ()))


def _reachable(service: Subject) -> set[str]:
    """The URNs of all that is deleted after this object: dependencies, and parents with theirs, transitively."""
    seen: set[str] = set()
    waiting = [service.resource] if service.resource is not None else []
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


LOAD_BALANCERS_DEPEND_ON_CCM = StackRule(
    "lb-service-depend-on-ccm",
    problems,
    why=(
        "A LoadBalancer Service must depend on the cloud controller manager. Otherwise a destroy may delete the "
        "manager first, and the Service's finalizer then keeps the Service, its namespace and its load balancer "
        "forever."
    ),
    level=MANDATORY,
    settings={
        "images": IMAGES,
        "loadBalancerClasses": setting(
            "texts",
            f"spec.loadBalancerClass values that the CCM serves, beside {', '.join(OUR_CLASSES)}; the rule ignores "
            "Services of other classes.",
            [],
        ),
        "requireController": setting(
            "boolean", "Also report LoadBalancer Services of a stack that has no cloud controller manager.", False
        ),
    },
    title="LoadBalancer Services depend on the CCM",
    severity=HIGH,
    sections="2.2",
    judges=(
        "Each Service of type LoadBalancer depends on the CCM's workload in the same cluster (the same provider), "
        "through dependencies, the dependencies of properties, and those of its parents, at any distance. The rule "
        "skips Services with a `spec.loadBalancerClass` that is neither ours nor in `loadBalancerClasses`, because "
        "another controller creates their load balancers. It also skips a stack that has no CCM for the Service's "
        "cluster (it runs outside of the stack, as on a managed cluster), unless `requireController` is set."
    ),
    tags=["destroy"],
    remedy=(
        "Pass the CCM's component (or its workload) in depends_on of the Service, or of the component that makes it. "
        "If a load balancer is already stuck, start the manager again, or delete the load balancer in the cloud and "
        "then remove the finalizer service.kubernetes.io/load-balancer-cleanup from the Service."
    ),
    url="https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/",
)
