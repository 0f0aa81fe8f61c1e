"""A proxy before the services, for one client: it counts requests, and makes chosen ones go wrong.

Catalogs that pass through it name its own address, so that a client comes back for every request.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import orjson
import urllib3

_ID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_HOP_BY_HOP = frozenset({"connection", "content-length", "transfer-encoding", "server", "date"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with a request: an answer with this status instead, or one that is lost, after a delay."""

    status: int = 0
    """0: the service carries the request out."""
    body: object = None
    headers: Mapping[str, str] | None = None
    loses_answer: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, and what it says, as JSON."""

    status: int
    body: object


Aside = Callable[[str, Message], Answer | None]
"""Answers a request with this path and these headers that is for no service; None: it is for one."""


class Proxy:
    """Serves while its `with` block runs. `fault` is asked about each operation, and says what goes wrong with it."""

    def __init__(
        self,
        ports: Mapping[str, int],
        address: tuple[str, int] = ("127.0.0.1", 0),
        aside: Aside = lambda _path, _headers: None,
    ) -> None:
        """`ports`: of each service; the first part of a path names the service. Port 0 of `address`: any free one."""
        self.counts: Counter[str] = Counter()
        """Requests by operation: `GET network /v2.0/ports`, IDs replaced."""
        self.fault: Callable[[str], Fault | None] = lambda _: None
        self._lock = threading.Lock()
        self._pool = urllib3.PoolManager(retries=False, timeout=120.0, maxsize=32)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                said = aside(self.path, self.headers)
                if said is not None:
                    _answer(self, said.status, {"Content-Type": "application/json"}, orjson.dumps(said.body))
                else:
                    proxy.serve(self, ports)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do  # noqa: N815  # as the base class calls them

            def log_message(self, format: str, *args: object) -> None:
                """Nothing is logged."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(address, Handler)
        self.url = f"http://{address[0]}:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def auth_url(self) -> str:
        """Keystone's, for a cloud config."""
        return f"{self.url}/identity/v3"

    def peace(self) -> None:
        """Nothing goes wrong from now on, and counts begin anew."""
        with self._lock:
            self.counts.clear()
            self.fault = lambda _: None

    def serve(self, request: BaseHTTPRequestHandler, ports: Mapping[str, int]) -> None:
        """Answer one request."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        service, _, target = request.path.lstrip("/").partition("/")
        operation = operation_of(request)
        with self._lock:
            self.counts[operation] += 1
            fault = self.fault(operation) or Fault()
        time.sleep(fault.seconds)
        if fault.status:
            _answer(request, fault.status, dict(fault.headers or {}), orjson.dumps(fault.body))
            return
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP | {"host"}}
        url = f"http://127.0.0.1:{ports[service]}/{target}"
        answer = self._pool.request(request.command, url, body=body or None, headers=headers, redirect=False)
        if fault.loses_answer:
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        data = answer.data
        if target.endswith("/auth/tokens"):
            for name, port in ports.items():
                data = data.replace(f"http://127.0.0.1:{port}".encode(), f"{self.url}/{name}".encode())
        _answer(request, answer.status, dict(answer.headers), data)


def operation_of(request: BaseHTTPRequestHandler) -> str:
    """`GET network /v2.0/ports/ID`."""
    service, _, target = request.path.lstrip("/").partition("/")
    return f"{request.command} {service} {_ID.sub('ID', '/' + target.partition('?')[0])}"


def _answer(request: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], body: bytes) -> None:
    request.send_response(status)
    for name, value in headers.items():
        if name.lower() not in _HOP_BY_HOP:
            request.send_header(name, value)
    if status != 204:
        request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body if status != 204 else b"")
