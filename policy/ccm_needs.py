"""The rights in Kubernetes that a cloud controller manager's workload needs, by its flags.

Ours needs exactly what `cloud_controller.rbac` says. One of upstream's framework needs at least what
`policy.upstream_rights` says; of other vendors' own ones that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from cloud_controller import clouds, rbac
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controller_names import canonical, controllers
from policy import clouds as policy_clouds
from policy import upstream_rights
from policy.command_lines import command_line, flag_values
from policy.objects import dig
from policy.powers import power_of_ccm
from policy.rbac_rights import ALL, Right
from policy.subjects import Subject
from policy.unknowns import known, not_evaluated
from policy.workloads import ccm_name, containers, repository

OURS: Final = "cloud-controller"
"""The last part of our image's repository, and our command."""
_NOT_UPSTREAM: Final = frozenset(
    provider
    for cloud in policy_clouds.descriptors()
    if cloud.ccm and not cloud.ccm.follows_upstream
    for provider in cloud.ccm.providers
)
_FALSE: Final = frozenset({"0", "f", "false"})
_READS: Final = frozenset({"get", "list", "watch"})

_Flags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a cloud controller manager needs."""

    controllers: tuple[str, ...]
    """Those that it runs; empty: not known."""
    required: Mapping[Right, tuple[str, ...]]
    """Rights without which it fails, with the controllers that need them; no controller: all do."""
    is_excess: Callable[[Right], bool]
    """Whether it should not have this right."""


def needs(workload: Subject) -> Needs | None:
    """What the workload's container that is a cloud controller manager needs; None if it has none.

    Raises UnknownValueError, also where the program does not say what it runs.
    """
    for container in containers(workload):
        if ccm_name(container, workload.config) is not None:
            return _of_container(container())
    return None


def _of_container(container: Mapping[str, Any]) -> Needs:
    found, unknown = known(command_line(container))
    words = [word for several in found for word in several]
    flags = flag_values(words)
    if unknown is not None and "--controllers" not in flags:
        raise unknown
    try:
        if _is_ours(container, words, flags):
            return _of_ours(flags)
        return _of_vendors(flags)
    except InvalidConfiguration as error:
        raise not_evaluated(f"flag --{error.field}: {error.why}") from None


def _is_ours(container: Mapping[str, Any], words: Collection[str], flags: _Flags) -> bool:
    image = repository(str(dig(container, "image") or ""))
    return (
        image == OURS
        or any(word.rpartition("/")[2] == OURS for word in words)
        or ("run" in words and "--cloud" in flags)
    )


def _of_ours(flags: _Flags) -> Needs:
    if "--config" in flags:
        raise not_evaluated("flag --config: the file may say which controllers run")
    cloud = clouds.descriptor(flags.get("--cloud", flags.get("--cloud-provider", "")))
    chosen = _chosen(flags, [*cloud.not_offered])
    address = flags.get("--bind-address", "127.0.0.1")
    gates = flags.get("--readiness-gates")

    def rights(of: Collection[str]) -> frozenset[Right]:
        rules = rbac.rules(
            of,
            protected=flags.get("--secure-port") != "0" and not _is_loopback(address),
            keeps_checkpoint=cloud.keeps_checkpoint,
            readiness_gates=cloud.readiness_gates.by_default if gates is None else gates.lower() not in _FALSE,
            lease=flags.get("--leader-elect-resource-name", rbac.LEASE_NAME),
        )
        leases = [rule for rule in rules.namespaced if "leases" in rule.resources]
        others = [rule for rule in rules.namespaced if rule not in leases]
        return frozenset(
            {
                *_rights(rules.cluster, ""),
                *_rights(leases, flags.get("--leader-elect-resource-namespace", rbac.LEASE_NAMESPACE)),
                *_rights(others, rbac.LEASE_NAMESPACE),
            }
        )

    allowed = rights(chosen)
    return Needs(
        chosen, _required(rights, chosen, flags), lambda right: not any(need.covers(right) for need in allowed)
    )


def _of_vendors(flags: _Flags) -> Needs:
    """What a vendor's one needs, where it runs upstream's controllers; and which rights none should have."""
    as_accounts = _is_on(flags, "--use-service-account-credentials", default=False)
    given = [name.strip().removeprefix("-") for name in flags.get("--controllers", ALL).split(",")]
    if (
        flags.get("--cloud-provider", "") in {"", *_NOT_UPSTREAM}
        or as_accounts
        or not all(_is_upstream(name) for name in given)
    ):
        return Needs((), {}, partial(_is_dangerous, as_accounts))
    chosen = _chosen(flags, ["volume"])

    def rights(of: Collection[str]) -> frozenset[Right]:
        lease = flags.get("--leader-elect-resource-name", rbac.LEASE_NAME)
        return upstream_rights.rights(of, lease, flags.get("--leader-elect-resource-namespace", rbac.LEASE_NAMESPACE))

    here = rights(chosen)
    elsewhere = {right for right in rights(upstream_rights.CONTROLLERS) - here if right.verb not in _READS}
    return Needs(
        chosen,
        _required(rights, chosen, flags),
        lambda right: right in elsewhere or _is_dangerous(False, right),
    )


def _is_upstream(name: str) -> bool:
    try:
        # `node` is ours; upstream calls it `cloud-node`.
        return name == ALL or (
            canonical(name) in upstream_rights.CONTROLLERS and name not in ("node", "node-lifecycle")
        )
    except InvalidConfiguration:
        return False


def _is_dangerous(as_accounts: bool, right: Right) -> bool:
    """Whether no cloud controller manager should have it. `as_accounts`: its controllers have accounts of their own."""
    if as_accounts and right.resource == "serviceaccounts/token":
        return False
    return ALL in (right.group, right.resource, right.verb) or bool(
        power_of_ccm(right.group, right.resource, right.verb, bool(right.name))
    )


def _chosen(flags: _Flags, not_offered: Collection[str]) -> tuple[str, ...]:
    given = flags.get("--controllers", ALL).split(",")
    if not _is_on(flags, "--configure-cloud-routes", default=True) and ALL in given:
        given = [*given, "-route"]
    return controllers(given, not_offered)


def _required(
    rights: Callable[[Collection[str]], frozenset[Right]], chosen: tuple[str, ...], flags: _Flags
) -> dict[Right, tuple[str, ...]]:
    """What it must have. With a kubeconfig it acts as somebody else, and a dry run only reads, without a lease."""
    if flags.get("--kubeconfig"):
        return {}
    reads = _is_on(flags, "--dry-run", default=False)
    elects = not reads and _is_on(flags, "--leader-elect", default=True)
    by_controller = {controller: rights([controller]) for controller in chosen}
    found: dict[Right, tuple[str, ...]] = {}
    for right in rights(chosen):
        if (elects or right.resource != "leases") and (not reads or right.verb in _READS):
            by = tuple(name for name in chosen if right in by_controller[name])
            found[right] = () if len(by) == len(chosen) > 1 else by
    return found


def _rights(rules: Collection[rbac.PolicyRule], namespace: str) -> set[Right]:
    return {
        Right(group, resource, verb, namespace, name)
        for rule in rules
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for name in rule.resource_names or ("",)
    }


def _is_on(flags: _Flags, name: str, *, default: bool) -> bool:
    return flags[name].lower() not in _FALSE if name in flags else default


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        # An environment variable, such as the pod's address.
        return False
