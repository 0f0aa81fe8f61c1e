"""Uvicorn's HTTP protocol that can end a client's connection without an answer, as a broken network does."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class AbortableProtocol(H11Protocol):
    """Knows the transport of each client, which ASGI itself does not offer."""

    _transports: dict[tuple[str, int], Any] = {}  # noqa: RUF012 - one table for all connections of the process

    def connection_made(self, transport: Any) -> None:
        self._transports[transport.get_extra_info("peername")] = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transports.pop(self.transport.get_extra_info("peername"), None)
        super().connection_lost(exc)

    @classmethod
    def abort(cls, client: tuple[str, int] | None) -> bool:
        """Reset the connection of this client; False if there is none."""
        transport = cls._transports.get(client) if client is not None else None
        if transport is None:
            return False
        transport.abort()
        return True
