"""A proxy before the services, for one client: it counts requests, and makes chosen ones go wrong.

Catalogs that pass through it name its own address, so that a client comes back for every request.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from local.http_client import HttpError, pool
from local.http_messages import Answer, Request, json_answer
from local.http_server import Application, config, serving

_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_HOP_BY_HOP = frozenset({"connection", "content-length", "date", "host", "server", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with a request: an answer with this status instead, or one that is lost, after a delay."""

    status: int = 0
    """0: the service carries the request out."""
    body: object = None
    headers: Mapping[str, str] | None = None
    loses_answer: bool = False
    seconds: float = 0.0


class Proxy:
    """`fault` is asked about each operation, and says what goes wrong with it."""

    url: str
    """Its own, while it serves."""

    def __init__(self, ports: Mapping[str, int], aside: Callable[[Request], Answer | None] = lambda _: None) -> None:
        """`ports`: of each service; the first part of a path names the service.

        `aside` answers requests that are for no service; None: it is for one.
        """
        self.counts: Counter[str] = Counter()
        """Requests by operation: `GET network /v2.0/ports`, IDs replaced."""
        self.fault: Callable[[str], Fault | None] = lambda _: None
        self._lock = threading.Lock()
        self._pool = pool(120.0)
        self._ports = ports
        self._aside = aside

    @contextmanager
    def serving(self, host: str = "127.0.0.1", port: int = 0) -> Iterator[Self]:
        """Serves while the block runs. Port 0: any free one."""
        # Requests wait for services that answer one at a time; what asks for the health must not wait behind them.
        threads = ThreadPoolExecutor(400, "proxy")

        def work(request: Request) -> Answer:
            return self._aside(request) or self.answer(request)

        async def answer(request: Request) -> Answer:
            return await asyncio.get_running_loop().run_in_executor(threads, work, request)

        try:
            with serving(config(Application(answer), host, port)) as self.url:
                yield self
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    @property
    def auth_url(self) -> str:
        """Keystone's, for a cloud config."""
        return f"{self.url}/identity/v3"

    def peace(self) -> None:
        """Nothing goes wrong from now on, and counts begin anew."""
        with self._lock:
            self.counts.clear()
            self.fault = lambda _: None

    def answer(self, request: Request) -> Answer:
        """The answer to a request for a service."""
        service, _, target = request.path.lstrip("/").partition("/")
        operation = operation_of(request)
        with self._lock:
            self.counts[operation] += 1
            fault = self.fault(operation) or Fault()
        time.sleep(fault.seconds)
        if fault.status:
            return json_answer(fault.status, fault.body, fault.headers)
        url = f"http://127.0.0.1:{self._ports[service]}/{target}"
        url += f"?{request.query}" if request.query else ""
        headers = _forwarded(request.headers)
        try:
            answer = self._pool.request(request.method, url, body=request.body or None, headers=headers, redirect=False)
        except HttpError:
            # Nobody knows whether it was carried out.
            return Answer(502, is_lost=True)
        data = answer.data
        if target.endswith("/auth/tokens"):
            for name, port in self._ports.items():
                data = data.replace(f"http://127.0.0.1:{port}".encode(), f"{self.url}/{name}".encode())
        return Answer(answer.status, data, _forwarded(dict(answer.headers)), is_lost=fault.loses_answer)


def operation_of(request: Request) -> str:
    """`GET network /v2.0/ports/ID`."""
    service, _, target = request.path.lstrip("/").partition("/")
    return f"{request.method} {service} {_ID.sub('ID', f'/{target}')}"


def _forwarded(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}
