"""Which CCMs do without their node's network, and the NetworkPolicy that limits what they and doctor reach. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

_NEEDED = frozenset({"node", "route"})
"""The controllers without which a new node is not ready, and so has no network for pods."""
_API_SERVER = (443, 6443)
"""Ports of API servers; the clouds' APIs have the first."""
_DNS = 53
_ANYWHERE = {"0.0.0.0/0": "169.254.0.0/16", "::/0": "fe80::/10"}
"""Every address of a family, and its link-local ones. CNIs skip the blocks of a family that their cluster lacks."""
_NODE_LOCAL_DNS = "169.254.20.10/32"


def suffices(controllers: Collection[str], machines: int, *, has_role: bool) -> bool:
    """Whether the CCM can run in the pod network.

    It can where it has a role of its own, so that it needs no machine's metadata, and where something else initialises
    the nodes and leads to their pods: the cloud that runs the control plane (`machines` is 0).
    """
    return machines == 0 and has_role and not _NEEDED & set(controllers)


def policy(
    labels: Mapping[str, str], served: Sequence[int], metadata: Sequence[str], further: Sequence[int] = ()
) -> dict[str, Any]:
    """The spec of the NetworkPolicy: out to API servers, the cloud's API and the cluster's DNS, in to ports `served`.

    The clouds' APIs have no lasting addresses, so port 443 is open to all but machines' metadata (`metadata`: ranges
    beside the link-local ones), and so are ports `further`. Another policy for the same pods adds to this one, such as
    a way to a proxy.
    """
    everything = [
        {"ipBlock": {"cidr": cidr, "except": [local, *(each for each in metadata if (":" in each) == (":" in cidr))]}}
        for cidr, local in _ANYWHERE.items()
    ]
    dns = [
        {"podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}},
        {"ipBlock": {"cidr": _NODE_LOCAL_DNS}},
    ]
    return {
        "podSelector": {"matchLabels": dict(labels)},
        "policyTypes": ["Ingress", "Egress"],
        # Kubelets and Prometheus, whose addresses differ in every cluster.
        "ingress": [{"ports": [_tcp(port)]} for port in served],
        "egress": [
            {
                "to": everything,
                "ports": [_tcp(port) for port in dict.fromkeys((*_API_SERVER, *further))],
            },
            {"to": dns, "ports": [{"port": _DNS, "protocol": protocol} for protocol in ("UDP", "TCP")]},
        ],
    }


def _tcp(port: int) -> dict[str, Any]:
    return {"port": port, "protocol": "TCP"}
