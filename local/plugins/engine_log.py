"""Says things to the user through the log of Pulumi's engine, which a plugin finds by its address."""

from __future__ import annotations

import socket
from contextlib import suppress
from hashlib import sha256

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from local.plugins.channels import open_channel

_SECONDS = 5.0
"""How long a message may take: nothing waits for a CLI that is gone."""


class EngineLog:
    """The log of one run. What it is told must hold no secrets. It never fails, and is silent without an address."""

    def __init__(self) -> None:
        self._address = ""
        self._stub: engine_pb2_grpc.EngineStub | None = None
        self._held: list[socket.socket] = []

    def connect(self, address: str) -> None:
        """Write to the engine at this address."""
        self._address = address
        self._stub = engine_pb2_grpc.EngineStub(open_channel(address)) if address else None

    def warn_once(self, message: str) -> None:
        """Warn, unless another plugin of this run has given the same warning."""
        if self._is_first(message):
            self._log(engine_pb2.WARNING, message)

    def say_once(self, message: str) -> None:
        """Say what is worth knowing, unless another plugin of this run has said it."""
        if self._is_first(message):
            self._log(engine_pb2.INFO, message)

    def debug(self, message: str) -> None:
        """Shown only with the CLI's `--debug`."""
        self._log(engine_pb2.DEBUG, message)

    def status(self, urn: str, line: str) -> None:
        """What a resource is doing or waiting for, until the next line replaces it."""
        self._log(engine_pb2.INFO, line, urn, ephemeral=True)

    def _is_first(self, message: str) -> bool:
        """Whether no other process of the run has said it; each provider instance has a process of its own.

        The name of a socket is free again when the process that holds it ends, however it ends.
        """
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0pulumi-{sha256(f'{self._address} {message}'.encode()).hexdigest()}")
        except OSError:
            mark.close()
            return False
        self._held.append(mark)
        return True

    def _log(
        self, severity: engine_pb2.LogSeverity.ValueType, message: str, urn: str = "", *, ephemeral: bool = False
    ) -> None:
        if self._stub is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        with suppress(grpc.RpcError):
            self._stub.Log(request, timeout=_SECONDS)
