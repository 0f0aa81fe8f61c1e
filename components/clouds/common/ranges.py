"""Whether the ranges of a cluster's network, pods and Services are disjoint."""

from __future__ import annotations

from ipaddress import IPv4Network


def overlap_problem(
    network: str, pods: str | None, services: str, *, called: str = "VPC"
) -> tuple[str, str, str] | None:
    """Of the ranges the first that overlaps another: its setting's name, the range, and why; None if none does.

    `called`: the cloud's word for its network.
    """
    of_services = IPv4Network(services)
    if pods is not None and IPv4Network(pods).overlaps(IPv4Network(network)):
        why = f"overlaps the {called}'s {network}; allowed: a range outside of it, as routes to pods require"
        return "pod_cidr", pods, why
    for whose, taken in ((called, network), ("pods", pods)):
        if taken is not None and of_services.overlaps(IPv4Network(taken)):
            why = f"overlaps the range of the {whose}, {taken}; allowed: an unused range"
            return "service_cidr", services, why
    return None
