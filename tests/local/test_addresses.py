"""The site's address plan."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from itertools import combinations

import pytest

from local.addresses import BLOCK_BASES, NETWORKS_PER_SITE, AddressBlock, socket_address


def test_cluster_addresses_map_to_loopback_and_loopback_stays() -> None:
    assert socket_address("10.33.2.7") == "127.33.2.7"
    assert socket_address("127.35.0.10") == "127.35.0.10"


@pytest.mark.parametrize("address", ["192.168.0.1", "8.8.8.8", "0.0.0.0", "::1", "10.0.0", "host"])
def test_no_other_address_is_ever_bound_or_dialled(address: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        socket_address(address)


def test_no_two_ranges_of_a_site_overlap_once_they_are_mapped() -> None:
    block = AddressBlock(32)
    ranges = []
    for index in range(NETWORKS_PER_SITE):
        network = block.network(index)
        for cidr in (network.machines, network.services, network.load_balancers, network.pods):
            first = int(cidr.network_address) & 0xFFFFFF
            ranges.append(range(first, first + cidr.num_addresses))
    own = [int.from_bytes(bytes(map(int, block.api_address.split(".")[1:])))]
    own += [
        int.from_bytes(bytes(map(int, block.control_plane_address(index).split(".")[1:])))
        for index in range(NETWORKS_PER_SITE)
    ]

    assert not any(max(a.start, b.start) < min(a.stop, b.stop) for a, b in combinations(ranges, 2))
    assert not any(address in each for address in own for each in ranges)
    assert len(set(own)) == len(own)


def test_blocks_do_not_overlap_and_there_are_fifteen() -> None:
    assert len(BLOCK_BASES) == 15
    seconds = [
        {
            int(str(cidr.network_address).split(".")[1])
            for index in range(4)
            for cidr in ranges(AddressBlock(base), index)
        }
        for base in BLOCK_BASES
    ]
    assert all(not a & b for a, b in combinations(seconds, 2))


def ranges(block: AddressBlock, index: int) -> tuple[IPv4Network, ...]:
    network = block.network(index)
    return network.machines, network.services, network.load_balancers, network.pods


@pytest.mark.parametrize("base", [0, 8, 17, 256])
def test_an_address_block_has_a_valid_start(base: int) -> None:
    with pytest.raises(ValueError, match="is not the start of a block"):
        AddressBlock(base)


def test_a_site_has_four_networks() -> None:
    with pytest.raises(ValueError, match="there is no network 4"):
        AddressBlock(32).network(4)


def test_ipv6_ranges_of_all_sites_are_disjoint() -> None:
    networks = [AddressBlock(base).network(index) for base in BLOCK_BASES for index in range(NETWORKS_PER_SITE)]
    ranges = [cidr for each in networks for cidr in (each.machines_ipv6, each.pods_ipv6)]

    assert not any(a.overlaps(b) for a, b in combinations(ranges, 2))
    assert all(cidr.subnet_of(IPv6Network("fd00::/16")) for cidr in ranges)
