"""A reverse proxy between a manager and one server: it counts every call, and misbehaves when it is told to.

The manager's two proxies (API server, cloud) share one `Recorder`, so that mutating calls have one order. Watches are
streamed through; everything else is read whole, recorded, and only then answered.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_NO_CHANGE = (
    *("/leases", "/events", "/configmaps", "tokenreviews", "subjectaccessreviews", "access:check"),
    *(" Describe", " Get", " List"),
)
"""Calls that change nothing that a crash could leave half done; the lease, the events and the checkpoint are nobody's
state. AWS is asked by POST, whatever for: its operations are told by their names (`ec2 DescribeSubnets`)."""

_WATCHES = "watch=true"
_NOT_RELAYED = frozenset({"connection", "content-length", "transfer-encoding", "keep-alive"})
_LOOK = 0.05


@dataclass(frozen=True)
class Call:
    """One request as the server answered it. `at` is the monotonic time of the answer."""

    at: float
    server: str
    method: str
    path: str
    status: int

    @property
    def mutating(self) -> bool:
        """Whether it is one of those that are counted: it has changed something, which a refused one has not."""
        return _may_change(self.method, self.path) and self.status < 400

    def __str__(self) -> str:
        return f"{self.server} {self.method} {self.path} -> {self.status}"


def _may_change(method: str, path: str) -> bool:
    return method in MUTATING and not any(part in path for part in _NO_CHANGE)


class Recorder:
    """Every call of one manager, and the trap that is set on one of the mutating ones. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._counted = 0
        self._under_way = 0
        self._trap: tuple[int, Callable[[], None]] | None = None
        self._sprung: Call | None = None

    def arm(self, number: int | None = None, deed: Callable[[], None] = lambda: None) -> None:
        """Begin to count anew; mutating call `number` is not answered, and `deed` is done instead."""
        with self._lock:
            self._counted = 0
            self._trap = None if number is None else (number, deed)
            self._sprung = None

    @property
    def counted(self) -> int:
        """Mutating calls since `arm`."""
        with self._lock:
            return self._counted

    @property
    def sprung(self) -> Call | None:
        """The call at which the trap shut, or None."""
        with self._lock:
            return self._sprung

    def calls(self, since: float = 0.0) -> list[Call]:
        """What was answered from `since` (monotonic) on, in order."""
        with self._lock:
            return [call for call in self._calls if call.at >= since]

    def writes(self, since: float = 0.0) -> list[Call]:
        """The mutating ones of `calls`."""
        return [call for call in self.calls(since) if call.mutating]

    def quiet_for(self, seconds: float) -> bool:
        """Whether no mutating call was answered for so long, and no call is under way.

        One that changes something may have had its effect; the answer to a read may be what the next change waits for.
        """
        with self._lock:
            if self._under_way:
                return False
        return not self.writes(time.monotonic() - seconds)

    @contextlib.contextmanager
    def under_way(self, path: str) -> Iterator[None]:
        """The call is with the server until the block ends. Watches are for ever, and nobody waits for them."""
        counts = int(_WATCHES not in path)
        with self._lock:
            self._under_way += counts
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= counts

    def take(self, call: Call) -> bool:
        """Record a call that the server has answered; whether the manager may have the answer."""
        with self._lock:
            self._calls.append(call)
            if not call.mutating:
                return True
            self._counted += 1
            if self._trap is None or self._trap[0] != self._counted:
                return True
            _, deed = self._trap
            self._sprung = call
            deed()
            return False


@dataclass(frozen=True)
class Refusal:
    """An answer that the proxy gives in the server's place."""

    status: int
    body: bytes
    content_type: str = "application/json"


Refuse = Callable[[str, str], Refusal | None]
"""From method and path (with query) to what is answered instead of asking the server."""

Naming = Callable[[str, Message, bytes], str]
"""From path (with query), headers and body to what is recorded as the call's path."""


Mending = Callable[[str, bytes], bytes]
"""From what is recorded as a call's path, and its answer, to the answer that is passed on."""


def path_of(path: str, _headers: Message, _body: bytes) -> str:
    """The path says what is asked for, as it does in most APIs."""
    return path


def as_it_is(_path: str, answer: bytes) -> bytes:
    """The answer itself."""
    return answer


class Proxy:
    """Listens on `host` and relays to `backend` (a URL); use as a context manager."""

    def __init__(
        self,
        name: str,
        host: str,
        backend: str,
        recorder: Recorder,
        *,
        serving: ssl.SSLContext | None = None,
        trust: ssl.SSLContext | None = None,
        naming: Naming = path_of,
        mending: Mending = as_it_is,
    ) -> None:
        self.name = name
        self.naming = naming
        self.mending = mending
        self.recorder = recorder
        self.refuse: Refuse | None = None
        self._backend = urlsplit(backend)
        self._trust = trust
        self._partitioned = threading.Event()
        self._lock = threading.Lock()
        self._caught = 0
        self._sockets: set[socket.socket] = set()
        self._streams: set[_Stream] = set()
        self._server = _Server((host, 0), _Handler)
        self._server.proxy = self
        if serving is not None:
            # Handshakes belong to the connection's thread, not to the one that accepts.
            self._server.socket = serving.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        scheme = "http" if serving is None else "https"
        self.url = f"{scheme}://{host}:{self._server.server_address[1]}"

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._server.serve_forever, args=(_LOOK,), name=self.name, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.heal()  # Whoever waits for the end of a partition would wait for ever.

    def cut(self) -> None:
        """Reset every connection that is open now."""
        with self._lock:
            sockets = [*self._sockets]
        for each in sockets:
            with contextlib.suppress(OSError):
                # Not the TLS layer's own shutdown, which is not for other threads.
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def partition(self) -> None:
        """Let nothing through any more, in either direction, and close nothing: as a cable that was pulled."""
        self._partitioned.set()

    def heal(self) -> None:
        """End the partition; connections that it caught are reset."""
        self._partitioned.clear()
        self.cut()

    @property
    def partitioned(self) -> bool:
        """Whether nothing gets through."""
        return self._partitioned.is_set()

    @property
    def caught(self) -> int:
        """How many calls and streams the partitions have kept from getting through."""
        with self._lock:
            return self._caught

    def catch(self) -> None:
        """One more."""
        with self._lock:
            self._caught += 1

    def silence_streams(self) -> int:
        """Swallow what the streams that are open now would say, and keep them open; answers how many."""
        with self._lock:
            for stream in self._streams:
                stream.silent = True
            return len(self._streams)

    @property
    def streams(self) -> int:
        """How many streams are open and not silenced."""
        with self._lock:
            return sum(not stream.silent for stream in self._streams)

    def connect(self) -> http.client.HTTPConnection:
        """A new connection to the server."""
        host, port = self._backend.hostname or "", self._backend.port
        if self._trust is None:
            return http.client.HTTPConnection(host, port)
        return http.client.HTTPSConnection(host, port, context=self._trust)

    @contextlib.contextmanager
    def held(self, *sockets: socket.socket | None) -> Any:
        """The sockets are cut with the others until the block ends."""
        present = [each for each in sockets if each is not None]
        with self._lock:
            self._sockets.update(present)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.difference_update(present)

    @contextlib.contextmanager
    def streaming(self, stream: _Stream) -> Any:
        """The stream is silenced with the others until the block ends."""
        with self._lock:
            self._streams.add(stream)
        try:
            yield
        finally:
            with self._lock:
                self._streams.discard(stream)


class _Stream:
    def __init__(self) -> None:
        self.silent = False


class _Server(ThreadingHTTPServer):
    proxy: Proxy
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server
    asked: str

    def handle(self) -> None:
        with self.server.proxy.held(self.connection):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """The recorder has it all."""

    def _relay(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True  # Killed while it asked: the server would wait for the rest for ever.
            return
        self.asked = self.server.proxy.naming(self.path, self.headers, body)
        with self.server.proxy.recorder.under_way(self.asked):
            self._relay_one(body)

    def _relay_one(self, body: bytes) -> None:
        proxy = self.server.proxy
        if self._lost():
            return
        refusal = None if proxy.refuse is None else proxy.refuse(self.command, self.asked)
        if refusal is not None:
            proxy.recorder.take(self._call(refusal.status))
            self._answer(refusal.status, [("Content-Type", refusal.content_type)], refusal.body)
            return
        upstream = proxy.connect()
        try:
            upstream.connect()
            with proxy.held(upstream.sock):
                headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
                upstream.request(self.command, self.path, body or None, headers)
                answer = upstream.getresponse()
                if self.command == "GET" and _WATCHES in self.path and answer.status == 200:
                    self._stream(answer)
                    return
                data = answer.read()
        except (OSError, http.client.HTTPException):
            self.close_connection = True  # As if the manager had asked the server itself.
            return
        finally:
            upstream.close()
        if not proxy.recorder.take(self._call(answer.status)) or self._lost():
            self.close_connection = True
            return
        self._answer(answer.status, answer.getheaders(), proxy.mending(self.asked, data))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _relay  # noqa: N815 - http.server's names

    def _call(self, status: int) -> Call:
        proxy = self.server.proxy
        return Call(time.monotonic(), proxy.name, self.command, self.asked.partition("?")[0], status)

    def _lost(self) -> bool:
        """Whether the cable is pulled; returns only when it is back, or when the manager has hung up."""
        proxy = self.server.proxy
        lost = False
        while proxy.partitioned:
            if not lost:
                lost = self.close_connection = True
                proxy.catch()
            time.sleep(_LOOK)
        return lost

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _NOT_RELAYED:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        proxy, stream = self.server.proxy, _Stream()
        proxy.recorder.take(self._call(answer.status))
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _NOT_RELAYED:
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        with proxy.streaming(stream):
            while data := answer.read1(65536):
                if self._lost():
                    return
                if not stream.silent:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            if not stream.silent:
                self.wfile.write(b"0\r\n\r\n")
                return
            # A silent stream does not end either.
            while self.connection.recv(1):
                pass
