"""Rule: the cluster CIDR and the route table have room for as many nodes as there can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_network
from typing import Final

from policy.clouds.interface import PolicyCloud
from policy.infrastructure import clouds_of_machines, most_machines, route_quota
from policy.kubernetes_flags import CONTROLLER_MANAGER, UNKNOWN_TEXTS, Found, flags_of
from policy.pod_routes import allocated, routes_pods
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if
from policy.workloads import IMAGES, WORKLOADS, ccm_name, containers

_MASK: Final = {4: 24, 6: 64}
"""kube-controller-manager's, and kubeadm's, by family."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Fewer node CIDRs, or fewer routes, than the largest number of nodes."""
    made = clouds_of_machines(stack)
    for cloud in made:
        for subject, found in flags_of(stack):
            yield subject, partial(_ranges, stack, cloud, found)
        for subject in stack.of(*WORKLOADS):
            for container in containers(subject):
                is_ccm = partial(ccm_name, container, stack.config)
                conditions: list[Callable[[], object]] = [is_ccm, partial(routes_pods, container)]
                yield subject, partial(problem_if, conditions, partial(_routes, stack, cloud))


def _ranges(stack: Stack, cloud: PolicyCloud, found: Found) -> str | None:
    cidr = (allocated(found) or "").partition(",")[0]
    try:
        network = ip_network(cidr, strict=False)
    except ValueError:
        return None
    flags = found()
    given = flags.value(CONTROLLER_MANAGER, f"node-cidr-mask-size-ipv{network.version}", "node-cidr-mask-size") or ""
    mask = int(given) if given.isdecimal() else _MASK[network.version]
    most, room = most_machines(stack, cloud), 2 ** (mask - network.prefixlen) if mask >= network.prefixlen else 0
    if most <= room:
        return None
    return (
        f"{flags.where}: the cluster CIDR has {room} parts of /{mask}, one a node, and the stack can have {most} nodes"
    )


def _routes(stack: Stack, cloud: PolicyCloud) -> str | None:
    quota = int(stack.config.get("routeQuota") or 0) or route_quota(cloud)
    most = most_machines(stack, cloud)
    if quota is None or most <= quota:
        return None
    return (
        f"the CCM routes pods, and the stack can have {most} nodes, but a route table of {cloud.name} takes {quota} "
        "routes"
    )


NODES_HAVE_ROOM = StackRule(
    "cluster-cidr-cover-nodes",
    problems,
    why=(
        "Each node takes a part of the cluster CIDR and, where the CCM routes pods, a route. Nodes beyond either get "
        "no pods, just when the cluster grows under load."
    ),
    level=ADVISORY,
    settings={
        "images": IMAGES,
        "routeQuota": setting(
            "integer", "How many routes a route table of the account takes; 0: the cloud's default.", 0
        ),
    },
    title="Ranges and routes suffice for all nodes",
    severity=MEDIUM,
    lines=["11.1.4", "11.4.6"],
    sections="2.3.2",
    judges=(
        "With every pool at its largest, the nodes are no more than the cluster CIDR has parts (`node-cidr-mask-size`; "
        "/24 and /64 by default), and, where the CCM runs the route controller, than a route table takes. "
        "`policy/data/limits.json` has the clouds' quotas and their sources; the setting `routeQuota` gives the "
        "account's."
    ),
    unseen=(
        "Other routes in the table; machines that another stack, or Cluster API, adds; node CIDRs of a second family."
        + UNKNOWN_TEXTS
    ),
    tags=["network", "quotas"],
    remedy=(
        "Choose a larger cluster CIDR or smaller parts, lower the pools' largest sizes, or let the cloud raise the "
        "quota and set routeQuota; or use a pod network without routes."
    ),
    url="https://kubernetes.io/docs/concepts/architecture/cloud-controller/#route-controller",
)
