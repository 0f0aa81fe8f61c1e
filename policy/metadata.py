"""The rule that the cloud controller manager reaches the metadata service where it needs it, made for each cloud."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any

from policy.network_policies import NETWORK_POLICY, limits_egress
from policy.objects import dig, items
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if
from policy.workloads import IMAGES, WORKLOADS, ccm_container, containers, pod, service_account

_ACCOUNT = "core/ServiceAccount"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A cloud's metadata service."""

    cloud: str
    address: str
    machines: Mapping[str, tuple[str, ...]]
    """Types of machines and of their templates, with where the options of the service stand."""
    counts_hops: bool
    """Whether its answers to a PUT go no further than the hop limit, so that pods in a network of their own lack it."""
    credentials: frozenset[str]
    """Variables, and annotations of ServiceAccounts, by which a CCM gets credentials without it."""


def rule(name: str, metadata: Metadata, url: str) -> StackRule:
    """The rule for this cloud."""
    hops = " and the hop limit (`httpPutResponseHopLimit`) is at least 2" if metadata.counts_hops else ""
    return StackRule(
        name,
        partial(problems, metadata),
        why=(
            "A CCM without credentials of its own takes its machine's role from the metadata service, and does not "
            "start if it cannot reach the service. Nobody else may take the role: the service must require a session "
            "token."
        ),
        level=ADVISORY,
        settings={"images": IMAGES},
        title=f"The CCM reaches {metadata.cloud}'s metadata service, with sessions",
        severity=MEDIUM,
        lines=["11.1.3"],
        judges=(
            "Machines and their templates set `httpTokens` to `required`. A CCM that is given no credentials (by "
            "variables, or by its ServiceAccount) runs where the service answers: it is not switched off, and without "
            f"`hostNetwork`, no NetworkPolicy for the CCM's pods keeps it from {metadata.address}{hops}."
        ),
        unseen=(
            "Node pools whose options the cloud chooses, firewalls on machines, and credentials in a cloud "
            "config or a mounted file that no variable names."
        ),
        tags=[metadata.cloud, "network"],
        remedy=(
            "Give the CCM a role by its ServiceAccount, which needs no metadata, or run it with hostNetwork. Set "
            "httpTokens to required."
        ),
        url=url,
    )


def problems(metadata: Metadata, stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Machines that answer without sessions, and CCMs that rely on a service that they do not reach."""
    machines = stack.of(*metadata.machines)
    if not machines:
        stack.not_applicable(f"the stack makes no machines or templates of {metadata.cloud}")
    for machine in machines:
        yield machine, partial(_sessions, metadata, machine)
    for workload in stack.of(*WORKLOADS):
        # What a patch leaves out may be set elsewhere.
        if workload.is_patch:
            continue
        relies: list[Callable[[], object]] = [
            partial(ccm_container, workload),
            partial(_relies, metadata, stack, workload),
        ]
        for machine in machines:
            yield workload, partial(problem_if, relies, partial(_reach, metadata, machine, workload))
        policies = stack.of(NETWORK_POLICY)
        for policy in policies:
            kept_off = partial(_kept_off, metadata, policy, policies, workload)
            yield policy, partial(problem_if, relies, kept_off)


def _sessions(metadata: Metadata, machine: Subject) -> str | None:
    required = _option(metadata, machine, "httpTokens") == "required"
    return None if required else "the metadata service answers without a session: set httpTokens to required"


def _relies(metadata: Metadata, stack: Stack, workload: Subject) -> bool:
    """Whether nothing gives the CCM credentials but the metadata service."""
    for container in containers(workload):
        if dig(container(), "envFrom") or any(
            str(dig(each, "name")) in metadata.credentials for each in _env(container())
        ):
            return False
    account = service_account(workload)
    for subject in stack.of(_ACCOUNT):
        if (subject.cluster, subject.namespace) != (workload.cluster, workload.namespace):
            continue
        if dig(subject.props, "metadata", "name") == account:
            annotations = dig(subject.props, "metadata", "annotations") or {}
            return not any(str(name) in metadata.credentials for name in annotations)
    return True


def _env(container: Mapping[str, Any]) -> Iterator[Any]:
    yield from items(dig(container, "env"))


def _reach(metadata: Metadata, machine: Subject, workload: Subject) -> str | None:
    if _option(metadata, machine, "httpEndpoint") == "disabled":
        return f"the CCM has no credentials, and the metadata service of {machine.name} is switched off"
    if dig(pod(workload), "hostNetwork") or not metadata.counts_hops:
        return None
    if int(_option(metadata, machine, "httpPutResponseHopLimit") or 1) >= 2:
        return None
    return (
        f"the CCM has no credentials and a network of its own, which the metadata service of {machine.name} does not "
        "answer with httpPutResponseHopLimit 1: use hostNetwork, or a role by its ServiceAccount"
    )


def _kept_off(metadata: Metadata, policy: Subject, policies: list[Subject], workload: Subject) -> str | None:
    if dig(pod(workload), "hostNetwork") or not limits_egress(policy, workload):
        return None
    # What one policy lets out, no other keeps in.
    limiting = [other for other in policies if limits_egress(other, workload)]
    rules = [rule_ for other in limiting for rule_ in items(dig(other.props, "spec", "egress"))]
    if any(_lets_out(each, metadata.address) for each in rules):
        return None
    return f"the CCM has no credentials, and this policy keeps it from the metadata service ({metadata.address})"


def _lets_out(rule_: Any, address: str) -> bool:
    targets = [*items(dig(rule_, "to"))]
    return not targets or any(_contains(dig(each, "ipBlock"), address) for each in targets)


def _contains(block: Any, address: str) -> bool:
    cidr = dig(block, "cidr")
    if cidr is None or ip_address(address) not in ip_network(str(cidr), strict=False):
        return False
    return not any(ip_address(address) in ip_network(str(each), strict=False) for each in items(dig(block, "except")))


def _option(metadata: Metadata, machine: Subject, name: str) -> Any:
    return dig(machine.props, *metadata.machines[machine.kind], name)
