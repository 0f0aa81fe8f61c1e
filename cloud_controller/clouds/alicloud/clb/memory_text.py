"""The cache of server groups and certificates as bytes, for a checkpoint that outlives the process. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from cloud_controller.clouds.alicloud.clb.wire import Group, Server
from cloud_controller.clouds.common.checkpoint import packed, unpacked, without_largest
from cloud_controller.load_balancers.backends import Member

Certificates = Mapping[str, tuple[str, str]]
"""ID and certificate by domain, of one listener."""

_FORMAT = 1


def to_bytes(groups: Mapping[str, Group], certificates: Mapping[str, Certificates], *, limit: int) -> bytes:
    """The whole cache; if it exceeds `limit` bytes, without the largest groups."""
    by_size = sorted(groups.values(), key=lambda group: (len(group.servers), group.id))
    return without_largest(by_size, lambda left: _written(left, certificates), limit) or _written([], {})


def from_bytes(written: bytes) -> tuple[dict[str, Group], dict[str, dict[str, tuple[str, str]]]]:
    """The content written by `to_bytes`. Raises ValueError for anything else."""
    with unpacked(_FORMAT, written) as content:
        groups = {group.id: group for group in map(_group, content["groups"])}
        certificates = {
            listener: {str(domain): (str(of), str(cert)) for domain, (of, cert) in each.items()}
            for listener, each in content["certificates"].items()
        }
    return groups, certificates


def _written(groups: list[Group], certificates: Mapping[str, Certificates]) -> bytes:
    content = {
        "groups": [
            [each.id, each.load_balancer_id, each.name, dict(each.tags), [[*s.member, s.id] for s in each.servers]]
            for each in sorted(groups, key=lambda group: group.id)
        ],
        "certificates": {listener: dict(each) for listener, each in certificates.items()},
    }
    return packed(_FORMAT, content)


def _group(content: Any) -> Group:
    id, balancer, name, tags, servers = content  # noqa: A001
    texts = {str(key): str(value) for key, value in tags.items()}
    return Group(str(id), str(balancer), str(name), texts, tuple(map(_server, servers)))


def _server(content: Any) -> Server:
    address, port, instance, weight, server = content
    # Each node is a backend of many load balancers.
    return Server(Member(sys.intern(address), int(port), sys.intern(instance), int(weight)), sys.intern(server))
