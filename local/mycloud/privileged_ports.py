"""The lowest port that this process may bind: Linux reserves low ports for processes with a capability."""

from __future__ import annotations

from pathlib import Path

CAP_NET_BIND_SERVICE = 10


def first_bindable_port(proc: Path = Path("/proc")) -> int:
    """1 with CAP_NET_BIND_SERVICE, else the kernel's `ip_unprivileged_port_start` (at least 1)."""
    for line in (proc / "self" / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff" and int(value, 16) >> CAP_NET_BIND_SERVICE & 1:
            return 1
    return max(1, int((proc / "sys" / "net" / "ipv4" / "ip_unprivileged_port_start").read_text()))
