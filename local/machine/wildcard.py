"""Finds processes that listen on every address: on a shared loopback they would take the ports of every other pod."""

from __future__ import annotations

import os
from pathlib import Path

_LISTEN = "0A"
_UNCONNECTED_UDP = "07"


def wildcard_ports(group: int) -> list[str]:
    """The ports (`8080/tcp`) on which a process group of this machine listens at 0.0.0.0 or ::."""
    inodes = _socket_inodes(group)
    # A UDP client that never connects has such a socket too, at a port that the kernel chose.
    low, high = (int(bound) for bound in _read(Path("/proc/sys/net/ipv4/ip_local_port_range")).split())
    found = set()
    for table, state in (("tcp", _LISTEN), ("tcp6", _LISTEN), ("udp", _UNCONNECTED_UDP), ("udp6", _UNCONNECTED_UDP)):
        for port, inode in parse_sockets(_read(Path("/proc/net") / table), state):
            if inode in inodes and (state == _LISTEN or not low <= port <= high):
                found.add(f"{port}/{table[:3]}")
    return sorted(found)


def parse_sockets(table: str, state: str) -> list[tuple[int, str]]:
    """Port and inode of the sockets of a /proc/net table that are in `state` and bound to the wildcard address."""
    found = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        address, port = fields[1].split(":")
        if fields[3] == state and not address.strip("0"):
            found.append((int(port, 16), fields[9]))
    return found


def _socket_inodes(group: int) -> set[str]:
    inodes = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getpgid(int(entry.name)) != group:
                continue
            links = [str(descriptor.readlink()) for descriptor in (entry / "fd").iterdir()]
        except (OSError, ValueError):
            continue  # it ended, or is another user's
        inodes |= {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    return inodes


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""  # a kernel without IPv6
