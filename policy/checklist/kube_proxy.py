"""Rule: kube-proxy answers what load balancers send to nodes: health checks and node ports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from policy.infrastructure import require_own_control_plane
from policy.kubernetes_flags import KUBE_PROXY, UNKNOWN_TEXTS, Flags, Found, flags_of
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem

_MODES: Final = ("", "iptables", "ipvs", "kernelspace", "nftables")


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Configurations of kube-proxy with which nodes do not answer load balancers."""
    require_own_control_plane(stack)
    for subject, found in flags_of(stack):
        for problem in (_health, _node_ports, _mode):
            yield subject, partial(_of, found, problem)


def _of(found: Found, problem: Callable[[Flags], str | None]) -> str | None:
    flags = found()
    return problem(flags) if KUBE_PROXY in flags.headings else None


def _health(flags: Flags) -> str | None:
    address = flags.value(KUBE_PROXY, "healthzBindAddress", "healthz-bind-address")
    if address is None or not (_is_local(address) or address.endswith(":0")):
        return None
    return f"{flags.where}: kube-proxy's health check is not served where load balancers ask (0.0.0.0:10256)"


def _node_ports(flags: Flags) -> str | None:
    address = flags.value(KUBE_PROXY, "nodePortAddresses", "nodeport-addresses")
    if address is None or not all(_is_local(each) for each in address.split(",")):
        return None
    return f"{flags.where}: kube-proxy serves node ports at local addresses alone, which no load balancer reaches"


def _mode(flags: Flags) -> str | None:
    mode = flags.value(KUBE_PROXY, "mode", "proxy-mode")
    allowed = mode is None or mode in _MODES
    return None if allowed else f"{flags.where}: kube-proxy has no such mode; allowed: {', '.join(_MODES[1:])}"


def _is_local(address: str) -> bool:
    return address.startswith(("127.", "[::1]", "::1", "localhost"))


KUBE_PROXY_ANSWERS = StackRule(
    "kube-proxy-answer-load-balancers",
    problems,
    why=(
        "Load balancers send health checks to kube-proxy's port 10256 and traffic to node ports. Where kube-proxy "
        "serves them on local addresses only, no node ever becomes healthy."
    ),
    level=ADVISORY,
    title="kube-proxy answers load balancers",
    severity=MEDIUM,
    lines=["11.1.11"],
    judges=(
        "kube-proxy's flags and `KubeProxyConfiguration`, in user data, ConfigMaps, Secrets and workloads: "
        "`healthzBindAddress` is neither a local address nor port 0, `nodePortAddresses` has more than local "
        "addresses, and the mode exists (`userspace` was removed in 1.26). `cluster-cidr-agree` judges its cluster "
        "CIDR. The rule skips a stack whose control plane a cloud runs: there kube-proxy is an add-on."
    ),
    unseen=(
        "Addresses after the first in a list that spans several lines; what replaces kube-proxy (Cilium); security "
        "groups and firewalls in front of the port." + UNKNOWN_TEXTS
    ),
    tags=["network"],
    remedy=(
        "Leave healthzBindAddress at 0.0.0.0:10256 and nodePortAddresses empty or `primary`; limit who may connect by "
        "security groups."
    ),
    url="https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/",
)
