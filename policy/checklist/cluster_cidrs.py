"""Rule: who allocates, routes and masquerades pod ranges agrees on the cluster CIDR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from ipaddress import ip_network
from typing import Any, Final

from policy.command_lines import flag
from policy.infrastructure import require_own_control_plane
from policy.kubernetes_flags import CLUSTER, CONTROLLER_MANAGER, KUBE_PROXY, UNKNOWN_TEXTS, Found, flags_of
from policy.objects import dig
from policy.pod_routes import FALSE, allocated, routes_pods
from policy.rules import ADVISORY, HIGH, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, every_known, problem_if
from policy.workloads import IMAGES, LOOK_ALIKES, WORKLOADS, Container, ccm_name, containers, repository

_OURS: Final = "cloud-controller"


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Cluster CIDRs that differ, and routes to pods whose ranges nobody allocates."""
    require_own_control_plane(stack)
    texts = list(flags_of(stack))
    for subject, found in texts:
        yield subject, partial(_of_text, found)
    for subject in stack.of(*WORKLOADS):
        for container in containers(subject):
            is_ccm = partial(ccm_name, container, stack.config)
            yield subject, partial(problem_if, [is_ccm], partial(_differs, container, [each for _, each in texts]))
            if not subject.is_patch:
                upstream = partial(_is_upstream, container)
                yield subject, partial(problem_if, [is_ccm, upstream], partial(_lacks, container))
            routes = partial(routes_pods, container)
            for owner, found in (each for each in texts if not each[0].is_patch):
                yield owner, partial(problem_if, [partial(_allocates_not, found), is_ccm, routes], _nobody)


def _is_upstream(container: Container) -> bool:
    # Ours says itself what is missing, and is no other's.
    return repository(str(dig(container(), "image") or "")) != _OURS


def _lacks(container: Container) -> str | None:
    spec = container()
    if not routes_pods(container):
        return None
    if flag(spec, "--cluster-cidr"):
        allocates = (flag(spec, "--allocate-node-cidrs") or "true").lower() not in FALSE
        return None if allocates else f"{_name(spec)} writes routes, but has --allocate-node-cidrs=false"
    return f"{_name(spec)} runs the route controller without --cluster-cidr"


def _of_text(found: Found) -> str | None:
    flags = found()
    manager = _networks(allocated(found))
    proxy = _networks(flags.value(KUBE_PROXY, "clusterCIDR", "cluster-cidr"))
    if manager and proxy and manager != proxy:
        return f"{flags.where}: kube-proxy's cluster CIDR is not the one that kube-controller-manager allocates from"
    return None


def _differs(container: Container, texts: list[Found]) -> str | None:
    known = every_known(partial(allocated, found) for found in texts)
    if not known:
        return None
    mine = _networks(flag(container(), "--cluster-cidr"))
    if not mine or all(mine == _networks(each) for each in known):
        return None
    return f"{_name(container())}: --cluster-cidr is not the range that kube-controller-manager allocates from"


def _allocates_not(found: Found) -> bool:
    """kubeadm turns the allocation on where it knows a podSubnet; kube-controller-manager by itself never does."""
    flags = found()
    given = flags.value(CONTROLLER_MANAGER, "allocate-node-cidrs")
    if given is not None:
        return given.lower() in FALSE
    if flags.has(CONTROLLER_MANAGER, "allocate-node-cidrs"):
        return False
    if CLUSTER in flags.headings:
        return not flags.mentions("podSubnet")
    return any(component == CONTROLLER_MANAGER for component, _ in flags.values)


def _nobody() -> str:
    return "kube-controller-manager allocates no node CIDRs, but the CCM runs the route controller"


def _networks(text: str | None) -> frozenset[str] | None:
    try:
        return frozenset(str(ip_network(each.strip(), strict=False)) for each in text.split(",")) if text else None
    except ValueError:
        return None


def _name(spec: Mapping[str, Any]) -> str:
    return f"container {dig(spec, 'name')}"


CLUSTER_CIDRS_AGREE = StackRule(
    "cluster-cidr-agree",
    problems,
    why=(
        "kube-controller-manager allocates nodes' pod ranges from the cluster CIDR, the CCM routes what lies in it and "
        "deletes other routes there, and kube-proxy tells pods from outsiders by it. Where they differ, nodes lack "
        "routes, or traffic is masqueraded wrongly."
    ),
    level=ADVISORY,
    reports_good=LOOK_ALIKES,
    settings={"images": IMAGES},
    title="All agree on the cluster CIDR",
    severity=HIGH,
    lines=["11.1.9", "11.1.11"],
    sections="2.3.2, 8.1",
    judges=(
        "The CCM's `--cluster-cidr`, kube-controller-manager's (or kubeadm's `podSubnet`), and kube-proxy's are the "
        "same, in workloads, user data, ConfigMaps and Secrets. Where the CCM runs the route controller, it has a "
        "cluster CIDR and kube-controller-manager allocates node CIDRs. The rule skips a stack whose control plane a "
        "cloud runs."
    ),
    unseen=(
        "Ranges in a CCM's `--config` file; kube-proxy and kube-controller-manager in different texts; other programs "
        "that allocate node CIDRs (Calico, Cilium)." + UNKNOWN_TEXTS
    ),
    tags=["network"],
    remedy=(
        "Give one range to podSubnet (or --cluster-cidr of kube-controller-manager), to kube-proxy and to the CCM, and "
        "set --allocate-node-cidrs=true where the CCM routes, or --configure-cloud-routes=false where it does not."
    ),
    url="https://kubernetes.io/docs/concepts/architecture/cloud-controller/#route-controller",
)
