"""The cache of servers and certificates as bytes, for a checkpoint that outlives the process. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud_controller.clouds.alicloud.nlb.wire import Server
from cloud_controller.clouds.common.checkpoint import packed, unpacked, without_largest

Servers = tuple[Server, ...]
Certificates = tuple[str, ...]

_FORMAT = 1


def to_bytes(servers: Mapping[str, Servers], certificates: Mapping[str, Certificates], *, limit: int) -> bytes:
    """The servers by group and certificates by listener; beyond `limit` bytes, without the largest groups."""
    by_size = sorted(servers.items(), key=lambda each: (len(each[1]), each[0]))
    return without_largest(by_size, lambda left: _written(dict(left), certificates), limit) or _written({}, {})


def from_bytes(written: bytes) -> tuple[dict[str, Servers], dict[str, Certificates]]:
    """The content written by `to_bytes`. Raises ValueError for anything else."""
    with unpacked(_FORMAT, written) as content:
        servers = {str(group): tuple(map(_server, each)) for group, each in content["servers"].items()}
        certificates = {str(listener): tuple(map(str, each)) for listener, each in content["certificates"].items()}
    return servers, certificates


def _written(servers: Mapping[str, Servers], certificates: Mapping[str, Certificates]) -> bytes:
    by_group = {group: [[*each] for each in of] for group, of in servers.items()}
    return packed(_FORMAT, {"servers": by_group, "certificates": certificates})


def _server(content: Any) -> Server:
    name, kind, address, port, weight = content
    return Server.of(name, kind, address, int(port), int(weight))
