"""The API server's way to 10.x addresses: CONNECT over a Unix socket, to 127.x."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from local.addresses import block_of, socket_address
from local.control_plane import egress_proxy
from local.ports import unused_address

PORT = 10250


SITE = IPv4Network("10.32.0.0/12")


def test_an_address_of_the_cluster_leads_to_loopback() -> None:
    assert egress_proxy.target("CONNECT 10.33.0.10:10250 HTTP/1.1", SITE) == ("127.33.0.10", 10250)


@pytest.mark.parametrize(
    "line",
    [
        *("CONNECT 192.0.2.1:443 HTTP/1.1", "CONNECT example.org:443 HTTP/1.1", "GET / HTTP/1.1", "CONNECT", ""),
        *("CONNECT 127.0.0.1:22 HTTP/1.1", "CONNECT 127.33.0.10:10250 HTTP/1.1"),
        *("CONNECT 10.0.0.1:22 HTTP/1.1", "CONNECT 10.48.0.1:10250 HTTP/1.1"),
    ],
)
def test_the_egress_proxy_refuses_every_other_address(line: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        egress_proxy.target(line, SITE)


@contextlib.asynccontextmanager
async def proxied(directory: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a proxy."""
    async with await asyncio.start_unix_server(partial(egress_proxy.converse, block_of("10.1.0.0")), directory / "s"):
        reader, writer = await asyncio.open_unix_connection(directory / "s")
        with contextlib.closing(writer):
            yield reader, writer


async def status_of(reader: asyncio.StreamReader) -> bytes:
    return (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0]


def test_the_egress_proxy_forwards_data_and_its_end_both_ways(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(200_000))
        writer.close()

    async def converse() -> bytes:
        address = unused_address([PORT])
        async with (
            await asyncio.start_server(echo, socket_address(address), PORT),
            proxied(tmp_path) as (reader, writer),
        ):
            writer.write(f"CONNECT {address}:{PORT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert await status_of(reader) == b"HTTP/1.1 200 Connection established"
            writer.write(b"x" * 200_000)
            return await reader.read()

    assert asyncio.run(converse()) == b"x" * 200_000


@pytest.mark.parametrize(
    "request_line, status", [("CONNECT 192.0.2.1:1 HTTP/1.1", 400), ("CONNECT {}:1 HTTP/1.1", 502)]
)
def test_an_unreachable_address_is_an_error_with_its_reason(tmp_path: Path, request_line: str, status: int) -> None:
    async def ask() -> bytes:
        async with proxied(tmp_path) as (reader, writer):
            writer.write(f"{request_line.format(unused_address([1]))}\r\n\r\n".encode())
            return await status_of(reader)

    assert asyncio.run(ask()).startswith(f"HTTP/1.1 {status} ".encode())
