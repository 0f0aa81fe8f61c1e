"""A server for small requests: each gets one computed answer, and the connection is closed."""

from __future__ import annotations

import asyncio
import http
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_REQUEST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a JSON body (None: empty), and headers besides the usual ones."""

    status: int
    content: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


async def serve(host: str, port: int, answer: Callable[[str], Answer]) -> asyncio.Server:
    """Answer requests by their path, until the server is closed. Raises OSError if the port cannot be bound."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                words = (await reader.readline()).decode("latin-1").split()
                while (await reader.readline()).strip():
                    pass
            if len(words) > 1:
                writer.write(_encoded(answer(words[1].partition("?")[0])))
        except (TimeoutError, ValueError, ConnectionError):
            return  # an invalid request gets no answer
        finally:
            writer.close()

    return await asyncio.start_server(converse, host, port)


def _encoded(answer: Answer) -> bytes:
    body = b"" if answer.content is None else json.dumps(answer.content).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.status} {http.HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
