"""Which machine may be that of a Node without provider ID, though no machine has the Node's name: pure functions.

Names alone prove nothing: hosts are renamed, and kubelets are told other names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address

from cloud_controller.cloud import Instance, NodeAddress
from cloud_controller.controllers import nodes as view
from cloud_controller.kube import Object, name

_SHOWN = 3


def doubts(nodes: Iterable[Object], living: Iterable[Instance], with_nodes: Collection[str]) -> dict[str, str]:
    """Why a machine may be that of each of these nodes, and what to do; nodes without a machine are absent.

    `living`: the cluster's machines that are not terminated. `with_nodes`: the ids of those that Nodes have as theirs.
    """
    living = tuple(living)
    holders: dict[IPv4Address | IPv6Address, Instance] = {}
    for machine in living:
        for address in _addresses(machine.addresses):
            holders.setdefault(address, machine)
    found = {name(node): _doubt(node, holders, living, with_nodes) for node in nodes}
    return {of: doubt for of, doubt in found.items() if doubt is not None}


def _doubt(
    node: Object,
    holders: Mapping[IPv4Address | IPv6Address, Instance],
    living: Iterable[Instance],
    with_nodes: Collection[str],
) -> str | None:
    own = _addresses(view.addresses(node))
    for address in own:
        if machine := holders.get(address):
            patch = f'kubectl patch node {name(node)} -p \'{{"spec":{{"providerID":"{machine.provider_id}"}}}}\''
            return (
                f"machine {machine.id}, named {machine.name!r}, has its address {address}: if it is the node's, run "
                f"{patch}; otherwise delete the node"
            )
    # Until it is initialised, a node has no address, unless its kubelet was given one.
    others = () if own else [machine.id for machine in living if machine.id not in with_nodes]
    if not others:
        return None
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return (
        f"it has no address, and these machines of the cluster have no node: {', '.join(others[:_SHOWN])}{more}; if "
        "one of them is the node's, set the node's spec.providerID; otherwise delete the node"
    )


def _addresses(found: Iterable[NodeAddress]) -> list[IPv4Address | IPv6Address]:
    """Those by which a machine is reached, however they are spelled."""
    parsed = [view.ip(each.address) for each in found if each.type in ("InternalIP", "ExternalIP")]
    return [each for each in parsed if each and not (each.is_loopback or each.is_link_local or each.is_unspecified)]
