"""Assigns pod addresses: the free ones of the node's pod range in turn."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

# Network and broadcast address of each /24, and what a real network's bridge would take.
_NEVER_GIVEN = (0, 1, 255)


class OutOfAddressesError(Exception):
    """Every address of the pod range is in use."""


class PodAddresses:
    """Assigns the addresses of a pod range (10.x); a freed one is reused as late as possible."""

    def __init__(self, pod_cidr: str) -> None:
        self._network = IPv4Network(pod_cidr)
        self._used: set[IPv4Address] = set()
        self._next = 0

    def allocate(self, preferred: str | None = None) -> str:
        """A free address: `preferred` (the pod's before a reboot) if it is free.

        Raises OutOfAddressesError.
        """
        if preferred is not None:
            wanted = IPv4Address(preferred)
            if wanted in self._network and self._is_free(wanted):
                self._used.add(wanted)
                return preferred
        size = self._network.num_addresses
        for step in range(size):
            index = (self._next + step) % size
            address = self._network[index]
            if self._is_free(address):
                self._used.add(address)
                self._next = index + 1
                return str(address)
        raise OutOfAddressesError(f"every address of {self._network} is in use by a pod")

    def free(self, address: str) -> None:
        """The pod is gone; freeing twice is allowed."""
        self._used.discard(IPv4Address(address))

    def _is_free(self, address: IPv4Address) -> bool:
        return address not in self._used and int(address) % 256 not in _NEVER_GIVEN
