"""Which machine may be that of a Node without provider ID, though no machine has the Node's name: pure functions.

Names alone prove nothing: hosts are renamed, and kubelets are told other names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address

from cloud_controller.cloud import Instance, NodeAddress
from cloud_controller.controllers import nodes as view
from cloud_controller.kube import Object, name
from cloud_controller.listed import listed

_CLOCKS = timedelta(minutes=5)
"""By how much the clocks of cloud and API server may differ."""


def doubts(
    nodes: Iterable[Object], living: Iterable[Instance], with_nodes: Mapping[str, Object], *, untagged: bool = False
) -> dict[str, str]:
    """Why a machine may be that of each of these nodes, and what to do; nodes without a machine are absent.

    `living`: the cluster's machines that are not terminated (`untagged`: the project's). `with_nodes`: the oldest Node
    that has each machine as its own, by the machine's id.
    """
    living = tuple(living)
    holders: dict[IPv4Address | IPv6Address, list[Instance]] = {}
    for machine in living:
        for address in _addresses(machine.addresses):
            holders.setdefault(address, []).append(machine)
    found = {name(node): _doubt(node, holders, living, with_nodes, untagged=untagged) for node in nodes}
    return {of: doubt for of, doubt in found.items() if doubt is not None}


def _doubt(
    node: Object,
    holders: Mapping[IPv4Address | IPv6Address, Iterable[Instance]],
    living: Iterable[Instance],
    with_nodes: Mapping[str, Object],
    *,
    untagged: bool,
) -> str | None:
    own = _addresses(view.addresses(node))
    for address in own:
        for machine in holders.get(address, ()):
            # A younger Node's machine got the address when it was free again; an older one's host may be renamed.
            if (other := with_nodes.get(machine.id)) and view.registered(other) > view.registered(node):
                continue
            patch = f'kubectl patch node {name(node)} -p \'{{"spec":{{"providerID":"{machine.provider_id}"}}}}\''
            return (
                f"machine {machine.id}, named {machine.name!r}, has its address {address}: if it is the node's, run "
                f"{patch}; otherwise delete the node"
            )
    # Until it is initialised, a node has no address, unless its kubelet was given one.
    lonely = () if own else [machine for machine in living if machine.id not in with_nodes]
    # Elsewhere, `created_at` may be when the machine was last started.
    others = [machine.id for machine in lonely if not (untagged and _is_younger(machine, node))]
    if not others:
        return None
    machines = f"these machines of the {'project' if untagged else 'cluster'} have no node"
    return (
        f"it has no address, and {machines}: {listed(others, 3)}; if one of them is the node's, set the "
        "node's spec.providerID; otherwise delete the node"
    )


def _is_younger(machine: Instance, node: Object) -> bool:
    """Whether the machine was certainly made after the node, so that its kubelet cannot have registered it."""
    registered = view.registered(node)
    if machine.created_at is None or not registered:
        return False
    return machine.created_at > datetime.fromisoformat(registered) + _CLOCKS


def _addresses(found: Iterable[NodeAddress]) -> list[IPv4Address | IPv6Address]:
    """Those by which a machine is reached, however they are spelled."""
    parsed = [view.ip(each.address) for each in found if each.type in ("InternalIP", "ExternalIP")]
    return [each for each in parsed if each and not (each.is_loopback or each.is_link_local or each.is_unspecified)]
