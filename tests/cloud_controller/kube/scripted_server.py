"""An API server of a few lines, whose answers a test writes down beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cloud_controller.kube import Kube
from cloud_controller.kube.config import Connection


@dataclass
class Call:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """`lines` is sent piece by piece as a watch; after them the answer ends, or stays open where `hang` is set."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[Any] | None = None
    hang: threading.Event | None = None
    drop: bool = False


@dataclass
class ScriptedServer:
    """Answers each request with `answer(call)`; `calls` holds all that came."""

    port: int
    calls: list[Call] = field(default_factory=list)
    answer: Callable[[Call], Answer] = lambda _: Answer({})

    @property
    def kube(self) -> Kube:
        return Kube(Connection("http", "127.0.0.1", self.port, None, lambda: "secret-token"))

    def script(self, *answers: Answer) -> None:
        """Answer with these, one after the other; a request too many is a 500."""
        left = list(answers)
        self.answer = lambda _: left.pop(0) if left else Answer({"message": "nothing is scripted"}, 500)


@contextmanager
def serving() -> Iterator[ScriptedServer]:
    """A server on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            url = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(raw) if raw else None
            call = Call(self.command, url.path, dict(parse_qsl(url.query)), dict(self.headers), body)
            scripted.calls.append(call)
            answer = scripted.answer(call)
            if answer.drop:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.lines is None:
                data = json.dumps(answer.body).encode()
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in answer.lines:
                data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()
            if answer.hang is not None:
                answer.hang.wait(30)
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:  # The client closed a watch.
                return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.block_on_close = False
    scripted = ScriptedServer(http.server_address[1])
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield scripted
    finally:
        http.shutdown()
        http.server_close()
