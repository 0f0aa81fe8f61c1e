"""The clients that a load balancer serves."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network


class SourceRanges:
    """CIDRs of clients; empty: everybody."""

    def __init__(self, cidrs: Iterable[str]) -> None:
        self._ranges = [ip_network(cidr) for cidr in cidrs]

    def admits(self, client: str) -> bool:
        """Whether a client with this socket address is served: ranges may contain it or its cluster address."""
        if not self._ranges:
            return True
        forms = [ip_address(client)]
        first, _, rest = client.partition(".")
        if first == "127":
            forms.append(ip_address(f"10.{rest}"))
        return any(form in each for form in forms for each in self._ranges)
