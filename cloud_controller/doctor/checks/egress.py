"""Whether NetworkPolicies let the CCM's pods reach the API server, the cloud, and names of either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from cloud_controller.doctor.checks.causes import NONE
from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.seen import Seen
from cloud_controller.kube import ENDPOINT_SLICES, NETWORK_POLICIES, Object, key

_DNS = 53
Json = Mapping[str, Any]


def _run(seen: Seen) -> Iterator[Finding]:
    # NetworkPolicies do not concern pods in their node's network.
    pods = [pod for pod in seen.pods() if not pod["spec"].get("hostNetwork")]
    if not pods:
        return
    policies = seen.list(NETWORK_POLICIES, seen.target.namespace)
    servers = [*_servers(seen.list(ENDPOINT_SLICES))]
    for pod in pods:
        limiting = [policy for policy in policies if _limits(policy["spec"], pod["metadata"].get("labels") or {})]
        rules = [rule for policy in limiting for rule in policy["spec"].get("egress") or ()]
        if limiting and (closed := [*_closed(rules, servers)]):
            yield Finding(
                subject=f"pod/{key(pod)}",
                what=f"NetworkPolicies keep it from {', '.join(closed)}",
                evidence=(f"limited by {', '.join(key(policy) for policy in limiting)}",),
                remedy="let it out to these: in one of the policies, or in a further one, because policies add up",
                follows_from=NONE,
            )


def _servers(slices: Sequence[Object]) -> Iterator[tuple[str, int]]:
    """Where the API servers are: they write a slice about themselves."""
    for each in slices:
        if key(each) == "default/kubernetes":
            for endpoint in each.get("endpoints") or ():
                for port in each.get("ports") or ():
                    yield endpoint["addresses"][0], port["port"]


def _limits(policy: Json, labels: Mapping[str, str]) -> bool:
    """Whether the policy selects pods with these labels, and lets them out only to what its rules allow."""
    selector = policy.get("podSelector") or {}
    # Without types, a policy is about egress only if it has rules for it.
    types = policy.get("policyTypes") or (["Egress"] if policy.get("egress") else [])
    return (
        "Egress" in types
        and (selector.get("matchLabels") or {}).items() <= labels.items()
        and all(_holds(each, labels) for each in selector.get("matchExpressions") or ())
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None


def _closed(rules: Sequence[Json], servers: Sequence[tuple[str, int]]) -> Iterator[str]:
    """What no rule lets the pods reach."""
    closed = [server for server in servers if not any(_opens(rule, *server) for rule in rules)]
    if closed:
        yield f"the API server at {', '.join(f'{address}:{port}' for address, port in closed)}"
    if not any(_leaves(rule, {address for address, _ in servers}) for rule in rules):
        yield "the cloud's API: no rule lets it out of the cluster"
    if not any(_has_port(rule, _DNS, "UDP") for rule in rules):
        yield "the names of hosts (port 53/UDP)"


def _opens(rule: Json, address: str, port: int) -> bool:
    return _has_port(rule, port, "TCP") and any(_contains(block, address) for block in _blocks(rule))


def _leaves(rule: Json, known: set[str]) -> bool:
    """Whether the rule lets TCP out to addresses besides these. Where a cloud's API is, is not known."""
    others = (block for block in _blocks(rule) if str(ip_network(block["cidr"], strict=False)[0]) not in known)
    wide = any(ip_network(block["cidr"], strict=False).num_addresses > 1 for block in _blocks(rule))
    return _has_port(rule, None, "TCP") and (wide or any(others))


def _has_port(rule: Json, number: int | None, protocol: str) -> bool:
    """Whether the rule has this port (None: any). Names of ports are those of pods, which may be any."""
    ports = [each for each in rule.get("ports") or () if each.get("protocol", "TCP") == protocol]
    if not rule.get("ports"):
        return True
    if number is None:
        return bool(ports)
    return any(
        not isinstance(each.get("port"), int) or each["port"] <= number <= each.get("endPort", each["port"])
        for each in ports
    )


def _blocks(rule: Json) -> list[Json]:
    """The ranges that the rule lets out to; what selects pods leads to no address outside the pod network."""
    if not rule.get("to"):
        return [{"cidr": "0.0.0.0/0"}, {"cidr": "::/0"}]
    return [peer["ipBlock"] for peer in rule["to"] if peer.get("ipBlock")]


def _contains(block: Json, address: str) -> bool:
    found = ip_address(address)
    return found in ip_network(block["cidr"], strict=False) and not any(
        found in ip_network(hole, strict=False) for hole in block.get("except") or ()
    )


CHECK = Check(
    name="egress",
    holds="no NetworkPolicy keeps the CCM's pods from the API server, the cloud or the cluster's DNS",
    why="what the CCM cannot reach does not answer it, even while it answers everybody else",
    lines=("11.1.3", "10.1.1"),
    page="runbooks/egress.md",
    run=_run,
    after=frozenset({"api-server"}),
)
