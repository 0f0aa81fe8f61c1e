"""What the Go controller was recorded to leave in Octavia and Neutron, and to say of its Services, phase by phase.

The recordings hold what changed in each phase, without what is a default; ids, made-up names and the tags of owners are
left out of the comparison, because each controller has its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.compatibility.openstack_left import asked_for, left
from tests.compatibility.phases import name_of

Json = dict[str, Any]

LEFT_OUT = ("real-worker/security-groups", "real-worker/source-ranges", "real-worker/udp")
"""Recorded a second time, with Octavia's own worker: the controllers' part is the same."""

PEER: dict[str, Json] = {
    each["scenario"]: each
    for each in json.loads(Path(__file__).with_name("openstack_peer.json").read_text())
    if each["scenario"] not in LEFT_OUT
}
"""Of each scenario: for each phase, how Services changed, and what then changed in OpenStack and in Kubernetes."""

REFUSED = (
    *("class-unknown", "flavor-id-unknown", "floating-network-empty", "floating-network-found"),
    *("floating-subnet-tags-none", "loadbalancerip-unknown", "no-node-ports", "proxy-ingress-hostname"),
    *("proxy-protocol-v2", "tls-ref", "xff-and-proxy"),
)
"""Scenarios whose creation fails, of one controller or both. Their later phases are not compared."""

GOES_ON = ("lb-error-at-creation", "load-balancer-id", "quota-floating-ip", "quota-lb")
"""Scenarios whose creation fails, and whose later phases mend that."""

KINDS = (
    *("loadbalancers", "listeners", "pools", "healthmonitors", "members", "floatingips", "ports", "security_groups"),
    "node ports",
)
FAILURES = ("SyncLoadBalancerFailed", "UpdateLoadBalancerFailed")
_DONE = ("EnsuredLoadBalancer", "UpdatedLoadBalancer")
_SWITCHED_ON = {"admin_state_up": True}
_DEFAULTS: dict[str, Json] = {
    "loadbalancers": _SWITCHED_ON
    | {"provider": "amphora", "provisioning_status": "ACTIVE", "vip_network_id": "nodes", "vip_subnet_id": "nodes-v4"},
    "listeners": _SWITCHED_ON
    | {"connection_limit": -1, "allowed_cidrs": ["0.0.0.0/0"], "timeout_client_data": 50000}
    | {"timeout_member_connect": 5000, "timeout_member_data": 50000},
    "pools": _SWITCHED_ON | {"lb_algorithm": "ROUND_ROBIN"},
    "healthmonitors": _SWITCHED_ON | {"delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3},
    "members": _SWITCHED_ON | {"weight": 1, "backup": False},
    "floatingips": {"floating_network_id": "public"},
}


def of_peer(recorded: Json) -> Iterator[Json]:
    """What the Go controller left after each phase."""
    world: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
    _change(world, recorded.get("before", {}))
    status: dict[str, list[Json]] = {}
    wrote: set[str] = set()
    for phase in recorded["phases"]:
        _change(world, phase.get("changes", {}))
        status |= phase.get("status", {})
        for name, service in phase.get("services", {}).items():
            if service is None:
                status.pop(name, None)
        wrote |= {*phase.get("wrote", ())}
        reasons = phase["events"]
        failed = any(each in reasons for each in FAILURES) and not any(each in reasons for each in _DONE)
        found = {**left(world), **told(failed, reasons, status, wrote if status else ())}
        if phase["title"] == "restart":
            found["writes"] = phase["writes"]
        yield found


def _change(world: dict[str, dict[str, Json]], changes: Json) -> None:
    for kind in KINDS:
        for key, changed in changes.get(kind, {}).items():
            if changed is None:
                world[kind].pop(key, None)
            else:
                world[kind][key] = {**world[kind].get(key, _DEFAULTS.get(kind, {})), **changed}


def told(failed: bool, reasons: Iterable[str], status: dict[str, list[Json]], wrote: Iterable[str]) -> Json:
    """What Kubernetes shows: an error as last word, the events, and each Service's status and new annotations."""
    return {
        "error": failed,
        "events": dict.fromkeys(reasons, "there"),
        "status": {name: [_shown(each) for each in ingress] for name, ingress in status.items()},
        "annotations written": sorted(wrote),
    }


def _shown(ingress: Json) -> str:
    """What a status says, without addresses that are made up."""
    ip = ingress.get("ip")
    where = "" if ip is None else asked_for(ip) or ("the VIP" if ip.startswith("10.") else "the floating IP")
    return ", ".join(each for each in (where, ingress.get("hostname", ""), ingress.get("ipMode", "")) if each)


def named(recorded: Json, states: Iterable[Json]) -> dict[str, Json]:
    """The states after each phase by `scenario` or `scenario: phase`. If the creation fails for good, that is all."""
    found: dict[str, Json] = {}
    for phase, state in zip(recorded["phases"], states, strict=False):
        refused = phase is recorded["phases"][0] and state["error"] and recorded["scenario"] not in GOES_ON
        found[name_of(recorded, phase)] = {"refused": refused, **state}
        if refused:
            break
    return found
