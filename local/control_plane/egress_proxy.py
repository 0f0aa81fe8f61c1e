"""Connects the API server to nodes, pods and Services: maps their 10.x addresses to 127.x, where they listen here.

`python -m local.control_plane.egress_proxy SOCKET RANGE` serves HTTP CONNECT on a Unix socket, to the API server alone:
the socket is in the control plane's folder. The API server's --egress-selector-config-file names it. Only the addresses
of RANGE, the site's, are reachable: otherwise the authors of EndpointSlices could reach all of loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from functools import partial
from ipaddress import IPv4Address, IPv4Network

from local.addresses import socket_address

CHUNK = 64 * 1024
CONNECT_SECONDS = 10.0
OK, BAD_REQUEST, BAD_GATEWAY = "200 Connection established", "400 Bad Request", "502 Bad Gateway"


def target(request_line: str, reached: IPv4Network) -> tuple[str, int]:
    """The destination of `CONNECT 10.a.b.c:port HTTP/1.1`. Raises ValueError for any other request or address."""
    words = request_line.split()
    if len(words) != 3 or words[0] != "CONNECT":
        raise ValueError(f"{request_line!r} is not a CONNECT request")
    host, _, port = words[1].rpartition(":")
    if IPv4Address(host) not in reached:
        raise ValueError(f"{host} is not in {reached}, the addresses of this site")
    return socket_address(host), int(port)


async def converse(reached: IPv4Network, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection: a CONNECT request, then the data in both directions."""
    with contextlib.closing(writer), contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        try:
            host, port = target(head.decode("latin-1").split("\r\n", 1)[0], reached)
            async with asyncio.timeout(CONNECT_SECONDS):
                there = await asyncio.open_connection(host, port)
        except (OSError, ValueError, TimeoutError) as error:
            status = BAD_REQUEST if isinstance(error, ValueError) else BAD_GATEWAY
            writer.write(f"HTTP/1.1 {status}: {error}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            return
        with contextlib.closing(there[1]):
            writer.write(f"HTTP/1.1 {OK}\r\n\r\n".encode())
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, there[1]))
                group.create_task(_pump(there[0], writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Forward data until its end. TLS ends both directions at once, so there is nothing to close half-way."""
    with contextlib.suppress(ConnectionError):
        while chunk := await source.read(CHUNK):
            target.write(chunk)
            await target.drain()
    target.close()


async def serve(socket: str, reached: IPv4Network) -> None:
    """Serve until cancelled. Replaces the socket of a killed proxy."""
    async with await asyncio.start_unix_server(partial(converse, reached), socket) as server:
        await server.serve_forever()


if __name__ == "__main__":
    os.umask(0o077)
    asyncio.run(serve(sys.argv[1], IPv4Network(sys.argv[2])))
