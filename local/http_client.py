"""Sends an HTTP request, by urllib3, without retries; a caller sees every answer and failure."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import urllib3

T = TypeVar("T")

HttpError: Final = urllib3.exceptions.HTTPError
"""No answer in time, or not an HTTP one."""

_THREADS: Final = ThreadPoolExecutor(64, "http")


def pool(seconds: float, tls: ssl.SSLContext | None = None) -> urllib3.PoolManager:
    """Keeps connections, for callers of many requests. `seconds`: to connect, and between parts of an answer."""
    return urllib3.PoolManager(ssl_context=tls, timeout=seconds, retries=False, maxsize=32)


def request(
    method: str,
    url: str,
    *,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
) -> urllib3.BaseHTTPResponse:
    """The whole answer, a redirect too, over a connection of its own. `seconds`: as of a pool. Raises HttpError."""
    with pool(seconds, tls) as connections:
        return connections.request(method, url, headers=headers, json=json, body=body, redirect=False)


def status(url: str, *, seconds: float, headers: Mapping[str, str], tls: ssl.SSLContext | None = None) -> int:
    """The status of a GET, whose body may never end and is not read. `seconds`: as of a pool. Raises HttpError."""
    with pool(seconds, tls) as connections:
        answer = connections.request("GET", url, headers=headers, redirect=False, preload_content=False)
        answer.close()
        return answer.status


async def on_thread(send: Callable[[], T]) -> T:
    """Send on a thread, for an event loop. A request that is awaited no longer goes on, and holds up Python's exit."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, send)
