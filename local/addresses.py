"""The addresses of a site: its block of 127.x, the ranges inside it, and the mapping of 10.x to 127.x.

Kubernetes refuses loopback addresses in EndpointSlices, so nodes, pods and Services carry 10.a.b.c. Only loopback can
be bound or dialled here, so code that opens a socket maps the address to 127.a.b.c with `socket_address`. A site owns
sixteen consecutive second octets (one of fifteen blocks of a machine), so checkouts run side by side:

    base+0        the site itself: the cloud's API, control planes (127.x only)
    base+1        machines              a /18 for each of four networks
    base+2        cluster IPs           a /18 for each
    base+3        load balancers        a /18 for each (assigned as 127.x)
    base+4..+7    pods                  a /16 for each

Each network also has IPv6 ranges (fd00:BASE::/32 is the site's) that appear only as data: ::1 is the only IPv6 loopback
address, so these are never bound or dialled.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network

BLOCK_OCTETS = 16
BLOCK_BASES = tuple(range(BLOCK_OCTETS, 256, BLOCK_OCTETS))
NETWORKS_PER_SITE = 4
API_PORT = 7070


def socket_address(address: str) -> str:
    """The loopback address to bind or dial for a cluster address: 10.a.b.c -> 127.a.b.c; 127.x stays as it is.

    Raises ValueError for any other address: a local site must not use it on this machine.
    """
    first, _, rest = str(IPv4Address(address)).partition(".")
    if first not in ("10", "127"):
        raise ValueError(f"{address} is outside 10.0.0.0/8 and 127.0.0.0/8, the only ranges that a local site uses")
    return f"127.{rest}"


def block_of(address: str) -> IPv4Network:
    """The cluster addresses (10.x) of the block that contains this one."""
    return IPv4Network(f"{address}/12", strict=False)  # sixteen second octets


@dataclass(frozen=True, slots=True)
class NetworkRanges:
    """The address ranges of one network of a site; `load_balancers` is a range of 127.0.0.0/8, the others of 10/8."""

    machines: IPv4Network
    services: IPv4Network
    load_balancers: IPv4Network
    pods: IPv4Network
    machines_ipv6: IPv6Network
    pods_ipv6: IPv6Network


@dataclass(frozen=True, slots=True)
class AddressBlock:
    """A site's sixteen second octets, beginning with `base` (a multiple of 16 from 16 to 240)."""

    base: int

    def __post_init__(self) -> None:
        if self.base not in BLOCK_BASES:
            raise ValueError(f"{self.base} is not the start of a block (allowed: {', '.join(map(str, BLOCK_BASES))})")

    @property
    def api_address(self) -> str:
        """Where the cloud's API listens, on API_PORT."""
        return f"127.{self.base}.0.1"

    def control_plane_address(self, index: int) -> str:
        """The cluster address (10.x) of the control plane of network `index`; map it before binding."""
        return f"10.{self.base}.{index + 1}.1"

    def network(self, index: int) -> NetworkRanges:
        """The ranges of the network with this index (0 to 3)."""
        if not 0 <= index < NETWORKS_PER_SITE:
            raise ValueError(f"there is no network {index}: a site has {NETWORKS_PER_SITE} networks, counted from 0")
        third = index * 64
        return NetworkRanges(
            machines=IPv4Network(f"10.{self.base + 1}.{third}.0/18"),
            services=IPv4Network(f"10.{self.base + 2}.{third}.0/18"),
            load_balancers=IPv4Network(f"127.{self.base + 3}.{third}.0/18"),
            pods=IPv4Network(f"10.{self.base + 4 + index}.0.0/16"),
            machines_ipv6=IPv6Network(f"fd00:{self.base:x}:0:{index:x}::/64"),
            pods_ipv6=IPv6Network(f"fd00:{self.base:x}:{index + 1:x}::/48"),
        )
