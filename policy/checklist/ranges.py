"""Rule: the ranges of pods, of Services and of the network are disjoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import product
from typing import Final

from policy import clouds
from policy.infrastructure import control_planes
from policy.kubernetes_flags import API_SERVER, CONTROLLER_MANAGER, UNKNOWN_TEXTS, Found, flags_of
from policy.objects import dig
from policy.pod_routes import allocated
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem

_SERVICES: Final = "service-cluster-ip-range"
Range = tuple[str, Callable[[], str | None]]
"""What it is of, and its CIDRs, which may raise UnknownValueError."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Ranges of pods and of Services that overlap each other, or a network's."""
    networks = list(_networks(stack))
    for subject, found in flags_of(stack):
        pods: Range = ("pods", partial(allocated, found))
        services: Range = ("Services", partial(_services, found))
        for one, other in ((pods, services), *product((pods, services), networks)):
            yield subject, partial(_problem, one, other)
    for cloud, subject in control_planes(stack):
        if path := cloud.infrastructure.services.get(subject.kind):
            for other in networks:
                yield subject, partial(_problem, ("Services", partial(dig, subject.props, *path)), other)


def _networks(stack: Stack) -> Iterator[Range]:
    for cloud in clouds.descriptors():
        paths = cloud.infrastructure.networks
        for subject in stack.of(*paths):
            yield f"the network {subject.name}", partial(dig, subject.props, *paths[subject.kind])


def _services(found: Found) -> str | None:
    flags = found()
    return (
        flags.value(API_SERVER, _SERVICES)
        or flags.value(CONTROLLER_MANAGER, _SERVICES)
        or flags.anywhere("serviceSubnet")
    )


def _problem(one: Range, other: Range) -> str | None:
    first = _parsed(one[1]())
    # Reads the other only where it matters: it may be unknown.
    if first and any(mine.overlaps(theirs) for mine, theirs in product(first, _parsed(other[1]()))):
        return f"the range of {one[0]} overlaps that of {other[0]}"
    return None


def _parsed(cidrs: str | None) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(each.strip(), strict=False) for each in str(cidrs).split(",")] if cidrs else []
    except ValueError:
        return []


RANGES_ARE_DISJOINT = StackRule(
    "cluster-ranges-avoid-overlap",
    problems,
    why=(
        "Pods, Services and machines need ranges of their own. A pod's range within the network cannot be routed, and "
        "a Service's address that is also a machine's hides that machine from the nodes."
    ),
    level=ADVISORY,
    title="Ranges are disjoint",
    severity=HIGH,
    lines=["11.1.4"],
    sections="2.3",
    judges=(
        "The ranges of pods (`podSubnet`, `--cluster-cidr` of kube-controller-manager) and of Services "
        "(`serviceSubnet`, `--service-cluster-ip-range`, the managed cluster's) overlap neither each other nor those "
        "of the stack's networks and subnets. Where pods have addresses of the network, their range is not judged."
    ),
    unseen="Networks that are peered or reached by VPN, and a network that the stack does not make." + UNKNOWN_TEXTS,
    tags=["network"],
    remedy="Choose other ranges: podSubnet, serviceSubnet, or the managed cluster's range of Services.",
    url="https://kubernetes.io/docs/concepts/cluster-administration/networking/",
)
