"""Rule: what the CCM can reach is limited: by a NetworkPolicy, or by the security group of its machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy import clouds
from policy.network_policies import NETWORK_POLICY, limits_egress
from policy.objects import dig, each, items
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule, setting
from policy.subjects import Subject
from policy.unknowns import Problem, first_known
from policy.workloads import IMAGES, LOOK_ALIKES, WORKLOADS, of_ccm, pod

_ANYWHERE = frozenset({"0.0.0.0/0", "::/0"})


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """CCMs in the pod network without a NetworkPolicy, and CCMs on machines that nothing limits."""
    for workload in stack.of(*WORKLOADS):
        for problem in of_ccm(workload, [partial(_problem, workload, stack)]):
            yield workload, problem


def _problem(workload: Subject, stack: Stack) -> str | None:
    if dig(pod(workload), "hostNetwork"):
        return _on_machine(stack)
    limited = first_known(partial(_limits, policy, workload) for policy in stack.of(NETWORK_POLICY))
    return None if limited else "no NetworkPolicy selects its pods and limits their egress"


def _on_machine(stack: Stack) -> str | None:
    if stack.config.get("limitedBy"):
        return None
    if first_known(partial(cloud.limits_egress, stack) for cloud in clouds.descriptors() if cloud.limits_egress):
        return None
    return (
        "it is in its machine's network, and no machine of the stack has a security group that limits egress: "
        "limit it, or name in setting `limitedBy` what does"
    )


def _limits(policy: Subject, workload: Subject) -> bool:
    """Whether the policy lets the workload's pods out to less than everything."""
    return limits_egress(policy, workload) and not any(
        _is_open(rule) for rule in items(dig(policy.props, "spec", "egress"))
    )


def _is_open(rule: Mapping[str, Any]) -> bool:
    """Whether the rule lets out to every address on every port."""
    if [*each(dig(rule, "ports"))]:
        return False
    peers = [peer() for peer in each(dig(rule, "to"))]
    return not peers or any(dig(peer, "ipBlock", "cidr") in _ANYWHERE for peer in peers)


CCM_EGRESS_RESTRICTED = StackRule(
    "ccm-network-restrict-egress",
    problems,
    why=(
        "The CCM must reach the API servers and the cloud's API, and little else. Whoever takes it over otherwise "
        "carries the cloud's credentials wherever the network leads."
    ),
    level=ADVISORY,
    reports_good=(
        f"{LOOK_ALIKES}; CCMs whose NetworkPolicy is made by another provider of the same cluster; machines whose "
        "security groups are in `networkInterfaces` of a launch template"
    ),
    title="The CCM's egress is restricted",
    severity=MEDIUM,
    lines=["11.3.4"],
    settings={
        "images": IMAGES,
        "limitedBy": setting(
            "string",
            "What limits the egress of machines outside of the stack, such as a firewall: CCMs in their machine's "
            "network then pass.",
            "",
        ),
    },
    judges=(
        "A CCM in the pod network has a NetworkPolicy in its namespace that selects its pods and limits "
        "egress: none of its rules allows every address on every port. A CCM in its machine's network (`hostNetwork`) "
        "passes if the stack has a machine whose security groups do not allow all egress, or if `limitedBy` says what "
        "limits it."
    ),
    unseen=(
        "Whether the cluster's network enforces NetworkPolicies; other policies for the same pods, which add to what "
        "they reach; ranges that together are every address; on which machine a CCM runs, where only some are limited."
    ),
    tags=["network"],
    remedy=(
        "In the pod network, add a NetworkPolicy (cloud_controller/pod_network.py has one). On machines, let their "
        "security group allow egress to the cluster's own ranges and to port 443 only, as components/clouds do."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/network-policies/",
)
