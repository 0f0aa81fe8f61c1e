"""How the engine's processes speak gRPC with each other: by loopback alone, whatever the size of a message."""

from __future__ import annotations

from typing import Final

import grpc

_LARGEST = 400 * 1024 * 1024
"""Bytes; the SDK's own limit of a message."""

SIZES: Final = [
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.max_send_message_length", _LARGEST),
    # An error's message travels as metadata: one that were refused for its length would look like a lost server.
    ("grpc.max_metadata_size", _LARGEST),
    ("grpc.absolute_max_metadata_size", _LARGEST),
]
"""Options of servers; channels have them from `open_channel`."""


def open_channel(target: str) -> grpc.Channel:
    """A channel to a server on loopback, whatever proxy the environment names."""
    return grpc.insecure_channel(target, options=[*SIZES, ("grpc.enable_http_proxy", 0)])
