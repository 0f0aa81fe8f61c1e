"""Sends an HTTP request, by urllib3: without retries or redirects, so that a caller sees every answer and failure."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import urllib3

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
    """The whole answer, over a connection of its own. `seconds`: as of a pool. Raises HttpError."""
    with pool(seconds, tls) as connections:
        return connections.request(method, url, headers=headers, json=json, body=body, redirect=False)


async def on_thread(send: Callable[[], urllib3.BaseHTTPResponse]) -> urllib3.BaseHTTPResponse:
    """Send on a thread, for an event loop. A request that is awaited no longer goes on, and holds up Python's exit."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, send)
