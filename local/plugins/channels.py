"""gRPC between plugins and who uses them: on loopback only, with messages of any size; and how a plugin serves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, NoReturn

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


def serve_the_cli(port: int, end: Callable[[], None]) -> NoReturn:
    """Tell Pulumi's CLI, which started this process, the port; when it is done with it or gone, call `end` and exit.

    It sends SIGINT when it is done; when it is killed, it closes our standard input.
    """
    print(port, flush=True)
    try:
        while os.read(sys.stdin.fileno(), 1 << 16):
            pass
    except KeyboardInterrupt:
        pass
    end()
    sys.stdout.flush()
    os._exit(0)  # without waiting for calls that nobody will answer
