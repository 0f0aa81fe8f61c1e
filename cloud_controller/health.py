"""What the daemon answers over HTTP: /livez and /healthz (it runs), /readyz (it works), /metrics.

Plain HTTP, without authentication: bind it to loopback or to an address that only the monitoring reaches. A cloud that
does not answer makes the daemon not ready, never unhealthy: a restart would not help.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST

Check = Callable[[], str | None]
"""Answers what is wrong, or None."""

_log = logging.getLogger(__name__)


class HealthServer:
    """Serves in a thread of its own from `start` to `stop`."""

    def __init__(
        self,
        address: str,
        port: int,
        live: Mapping[str, Check],
        ready: Mapping[str, Check],
        metrics: Callable[[], bytes],
    ) -> None:
        """Bind the socket. Raises OSError where address and port can't be bound; port 0 picks a free one."""
        checks = {"/livez": live, "/healthz": live, "/readyz": ready}

        class Handler(BaseHTTPRequestHandler):
            timeout = 10  # Seconds; a client that says nothing does not hold a thread for ever.

            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                if path == "/metrics":
                    self._answer(200, metrics(), CONTENT_TYPE_LATEST)
                elif path in checks:
                    found = {name: check() for name, check in checks[path].items()}
                    wrong = any(found.values())
                    text = _report(found) if wrong or "verbose" in query else "ok"
                    self._answer(503 if wrong else 200, text.encode(), "text/plain; charset=utf-8")
                else:
                    self._answer(404, b"not found; there are /healthz, /livez, /readyz and /metrics", "text/plain")

            def _answer(self, status: int, body: bytes, content_type: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                _log.debug("http " + format, *args)

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        self._server = Server((address, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        """The port that is bound."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and close the socket."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _report(found: Mapping[str, str | None]) -> str:
    return "".join(f"[{'-' if wrong else '+'}]{name} {wrong or 'ok'}\n" for name, wrong in found.items())
