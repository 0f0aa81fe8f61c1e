"""gRPC between plugins and who uses them: on loopback only, with messages of any size."""

from __future__ import annotations

from typing import Final

import grpc

_LARGEST = 400 * 1024 * 1024
"""Bytes; the SDK's own limit of a message."""

SIZES: Final = [
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.max_send_message_length", _LARGEST),
    # An error message travels as metadata; refused for its length, it would look like a lost server.
    ("grpc.max_metadata_size", _LARGEST),
    ("grpc.absolute_max_metadata_size", _LARGEST),
]
"""Options of servers; `open_channel` sets those of channels."""


def open_channel(target: str) -> grpc.Channel:
    """A channel to a server on loopback; proxies from the environment are ignored."""
    return grpc.insecure_channel(target, options=[*SIZES, ("grpc.enable_http_proxy", 0)])
