"""Rule: with externalTrafficPolicy Local, the health check asks which nodes have pods."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial

from policy.checklist.load_balancers import BY_POD, CHECK_PORTS, UNCHECKED, marked, of_balanced
from policy.objects import dig, each, plain
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import SERVICE, Subject
from policy.unknowns import Problem


def problems(subject: Subject) -> Iterator[Problem]:
    """What contradicts the check by which a load balancer finds the nodes with pods."""
    if subject.kind != SERVICE:
        return
    is_local = [partial(_is_local, subject, yes=True), partial(_by_node, subject)]
    yield from of_balanced(subject, partial(_other_port, subject), is_local)
    yield from of_balanced(subject, partial(_off, subject), is_local)
    yield from of_balanced(subject, partial(_without_local, subject), [partial(_is_local, subject, yes=False)])


def _is_local(subject: Subject, *, yes: bool) -> bool:
    return (dig(subject.props, "spec", "externalTrafficPolicy") == "Local") is yes


def _by_node(subject: Subject) -> bool:
    return marked(subject.props, BY_POD) is None


def _other_port(subject: Subject) -> str | None:
    annotations = dig(subject.props, "metadata", "annotations") or {}
    for name in annotations:
        if any(fnmatchcase(name, pattern) for pattern in CHECK_PORTS):
            port = str(annotations[name]).strip()
            if port.isdigit() and int(port) not in _that_tell(subject):
                return (
                    f"annotation {name} checks another port than spec.healthCheckNodePort, so nodes without pods pass, "
                    "and connections to them fail"
                )
    return None


def _that_tell(subject: Subject) -> Iterator[int]:
    """The ports of a node that answer only where it has pods."""
    spec = dig(subject.props, "spec")
    yield plain(dig(spec, "healthCheckNodePort") or 0)
    for port in each(dig(spec, "ports")):
        yield plain(dig(port(), "nodePort") or 0)


def _off(subject: Subject) -> str | None:
    off = marked(subject.props, UNCHECKED)
    name = (off or "").partition(":")[0]
    return f"annotation {name} switches off the check that finds the nodes with pods" if off else None


def _without_local(subject: Subject) -> str | None:
    if dig(subject.props, "spec", "healthCheckNodePort") is None:
        return None
    return "spec.healthCheckNodePort needs spec.externalTrafficPolicy: Local; the API server refuses it without"


LOCAL_TRAFFIC_IS_CHECKED = ResourceRule(
    "lb-service-check-local-nodes",
    problems,
    why=(
        "With externalTrafficPolicy Local, a node forwards only to its own pods. Which nodes have pods, the load "
        "balancer learns from the health check node port, where kube-proxy answers. A check of another port, or none, "
        "sends connections to nodes that drop them."
    ),
    level=ADVISORY,
    title="Local traffic is checked on the right port",
    severity=MEDIUM,
    lines=["11.2.7"],
    sections="2.2",
    judges=(
        "With `externalTrafficPolicy: Local` and nodes as backends, no annotation sets a fixed port for the health "
        "check that is neither `spec.healthCheckNodePort` nor a node port of the Service, and none switches the check "
        "off. Without Local, `spec.healthCheckNodePort` is not set."
    ),
    unseen="A check by TCP on the right port: kube-proxy's answer, 503 without pods, needs HTTP.",
    tags=["availability"],
    remedy=(
        "Remove the annotation: the controllers then check the health check node port. Or use externalTrafficPolicy "
        "Cluster, or pods as backends."
    ),
    url="https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/#preserving-the-client-source-ip",
)
