"""The cache of servers and certificates as bytes, for a checkpoint that outlives the process. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import orjson

from cloud_controller.clouds.alicloud.nlb.wire import Server

Servers = tuple[Server, ...]
Certificates = tuple[str, ...]

_FORMAT = 1
_MOST_EXPANDED = 256 * 1024 * 1024
"""The largest expanded size in bytes of a checkpoint, which others may be able to write."""
_DAMAGES = (zlib.error, orjson.JSONDecodeError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""The exceptions of reading damaged data."""


def to_bytes(servers: Mapping[str, Servers], certificates: Mapping[str, Certificates], *, limit: int) -> bytes:
    """The servers by group and certificates by listener; beyond `limit` bytes, without the largest groups."""
    by_size = sorted(servers.items(), key=lambda each: (len(each[1]), each[0]))
    while len(written := _written(dict(by_size), certificates)) > limit and by_size:
        del by_size[-max(1, len(by_size) // 10) :]
    return written if len(written) <= limit else _written({}, {})


def from_bytes(written: bytes) -> tuple[dict[str, Servers], dict[str, Certificates]]:
    """The content written by `to_bytes`. Raises ValueError for anything else."""
    try:
        stream = zlib.decompressobj()
        content = orjson.loads(stream.decompress(written, _MOST_EXPANDED))
        if not stream.eof:
            raise ValueError("the data is damaged: it ends too early")
        if content["format"] != _FORMAT:
            raise ValueError(f"unknown format {content['format']!r}")
        servers = {str(group): tuple(map(_server, each)) for group, each in content["servers"].items()}
        certificates = {str(listener): tuple(map(str, each)) for listener, each in content["certificates"].items()}
    except _DAMAGES as error:
        raise ValueError(f"the data is damaged: {type(error).__name__}: {error}") from error
    return servers, certificates


def _written(servers: Mapping[str, Servers], certificates: Mapping[str, Certificates]) -> bytes:
    content = {
        "format": _FORMAT,
        "servers": {group: [[*each] for each in of] for group, of in servers.items()},
        "certificates": certificates,
    }
    return zlib.compress(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), 6)


def _server(content: Any) -> Server:
    name, kind, address, port, weight = content
    return Server.of(name, kind, address, int(port), int(weight))
