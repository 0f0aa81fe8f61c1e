"""Rule: every LoadBalancer Service has one owner: one controller that serves it, and one resource that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

from policy.checklist.load_balancers import is_balanced
from policy.checklist.serving import Server, Serving
from policy.objects import dig
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem, problem_if


def problems(stack: Stack) -> Iterator[tuple[Subject | None, Problem]]:
    """Controllers that serve the same Services, and Services that are made twice."""
    for one, other in combinations(_controllers(Serving(stack)), 2):
        both = one.classes & other.classes
        if both and one.cluster == other.cluster:
            yield other.subject, partial(_said, one, other, both)
    services = [each for each in stack.of(SERVICE) if not each.is_patch]
    for index, service in enumerate(services):
        for earlier in services[:index]:
            if earlier.cluster == service.cluster:
                conditions = [partial(is_balanced, service.props)]
                yield service, partial(problem_if, conditions, partial(_made_twice, service, earlier))


def _controllers(serving: Serving) -> list[Server]:
    """Those whose cluster is known: a managed cluster's too, where the stack can mean no other."""
    known = [server for server in serving.servers if server.cluster is not None]
    managed = [server for server in serving.servers if server.cluster is None]
    clusters = {server.cluster for server in known}
    if len(managed) == len(clusters) == 1:
        return [replace(managed[0], cluster=clusters.pop()), *known]
    return known


def _said(one: Server, other: Server, both: frozenset[str | None]) -> str:
    which = " and ".join(sorted("without a class" if each is None else f"of class {each}" for each in both))
    return f"{one.name} and {other.name} both serve Services {which}: each would make a load balancer of its own"


def _made_twice(service: Subject, earlier: Subject) -> str | None:
    name = _key(service)
    if name is None or name != _key(earlier):
        return None
    return f"Service {name} is also made by the resource {earlier.name}: each update undoes what the other wrote"


def _key(service: Subject) -> str | None:
    """NAMESPACE/NAME; None where the name is drawn."""
    name = dig(service.props, "metadata", "name")
    return f"{dig(service.props, 'metadata', 'namespace') or 'default'}/{name}" if name else None


SERVICES_HAVE_ONE_OWNER = StackRule(
    "lb-service-have-one-owner",
    problems,
    why=(
        "Two controllers that serve the same Service each make a load balancer, and overwrite the Service's address "
        "in turn; the one that is left behind costs money and stays open. Two resources that make the same Service "
        "overwrite its ports and annotations in turn."
    ),
    level=ADVISORY,
    title="LoadBalancer Services have one owner",
    severity=HIGH,
    lines=["11.2.6"],
    sections="2.2, 4.1",
    judges=(
        "No two controllers in one cluster serve the same `spec.loadBalancerClass`: this project's CCM, which serves "
        "its own classes and, without `--require-load-balancer-class`, Services without a class; a vendor's CCM; the "
        "one of the stack's managed cluster. A CCM whose `--controllers` leaves out the service controller passes. No "
        "two resources make a LoadBalancer Service of the same name in the same cluster."
    ),
    unseen=(
        "Controllers that are installed by Helm charts or outside the stack, and webhooks that give new Services a "
        "class."
    ),
    tags=["network"],
    remedy=(
        "Run one service controller, or give each its own classes: `--require-load-balancer-class` beside a vendor's "
        "CCM, and spec.loadBalancerClass on the Services. Remove the second resource that makes the same Service."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#load-balancer-class",
)
