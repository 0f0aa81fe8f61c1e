"""One HTTP request on one connection, cancellable at any await."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

MAX_HEAD = 64 * 1024


class HttpError(Exception):
    """The server gave no answer, or not an HTTP one."""


async def request(
    address: tuple[str, int],
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    timeout: float,
    read_body: bool = True,
) -> tuple[int, bytes]:
    """Status and body of the answer. Raises HttpError; `timeout` (seconds) covers the whole request."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(*address, limit=MAX_HEAD)
            try:
                writer.write(_head(address, method, path, headers or {}, len(body)) + body)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, length = _parse(head)
                return status, await _read(reader, length) if read_body else b""
            finally:
                writer.close()
                with suppress(OSError):  # the connection's end no longer matters
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise HttpError(f"{method} {path}: {error or type(error).__name__}") from error


def _head(address: tuple[str, int], method: str, path: str, headers: Mapping[str, str], length: int) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address[0]}:{address[1]}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if length:
        lines += ["Content-Type: application/json", f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _parse(head: str) -> tuple[int, int | None]:
    """The status, and the body's length if the header has it."""
    first, *rest = head.split("\r\n")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/"):
        raise ValueError("the answer is not HTTP")
    length = None
    for line in rest:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return int(status[:3]), length


async def _read(reader: asyncio.StreamReader, length: int | None) -> bytes:
    return await reader.read() if length is None else await reader.readexactly(length)
