"""Serves /livez and /healthz (the process runs), /readyz (it works), /metrics and /configz over HTTPS.

An unavailable cloud makes the daemon unready but never unhealthy: a restart would not help. Each check has its own
path (`/readyz/controller-node`); `?verbose` shows all checks, and `?exclude=NAME` skips one.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
from prometheus_client import CONTENT_TYPE_LATEST

from cloud_controller.daemon.options import Serving
from cloud_controller.daemon.reviews import Reviews
from cloud_controller.daemon.tls import ServerTls
from cloud_controller.kube import ApiError

Check = Callable[[], str | None]
"""Returns the problem, or None if the check passes."""

CONFIGURATION_NAME = "cloudcontrollermanager.config.k8s.io"
"""The key of the configuration in /configz, as upstream."""

_PATIENCE = 10.0
"""Seconds: a silent client must not occupy a thread forever."""
_STOP_CHECK = 0.1
_PATHS = "/healthz, /livez, /readyz, /metrics and /configz"

_log = logging.getLogger(__name__)


class HealthServer:
    """Serves in its own thread from `start` to `stop`."""

    def __init__(
        self,
        serving: Serving,
        live: Mapping[str, Check],
        ready: Mapping[str, Check],
        metrics: Callable[[], bytes],
        reviews: Reviews,
        details: Mapping[str, Check] = {},
    ) -> None:
        """Bind the socket. /readyz shows `details` beside its checks; they do not affect readiness.

        Raises OSError if the address cannot be bound or a file cannot be read, and InvalidConfiguration for an invalid
        certificate.
        """
        tls = ServerTls(serving.certificate, serving.address)
        checks = {"/livez": live, "/healthz": live, "/readyz": ready}

        class Handler(BaseHTTPRequestHandler):
            timeout = _PATIENCE

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                refused = 0 if is_open(url.path, serving) else self._refused(url.path)
                if refused:
                    self._answer(refused, _WHY[refused])
                    return
                root, _, single = url.path[1:].partition("/")
                if url.path == "/metrics":
                    self._answer(200, metrics(), CONTENT_TYPE_LATEST)
                elif url.path == "/configz":
                    shown = orjson.dumps({CONFIGURATION_NAME: serving.configuration}, default=str)
                    self._answer(200, shown, "application/json")
                elif (found := checks.get(f"/{root}")) is not None and (not single or single in found):
                    shown_details = details if root == "readyz" and not single else {}
                    self._answer(*report({single: found[single]} if single else found, url.query, shown_details))
                else:
                    self._answer(404, f"not found; available: {_PATHS}".encode())

            def _refused(self, path: str) -> int:
                """The status that refuses the request, or 0 to allow it."""
                kind, _, token = self.headers.get("Authorization", "").partition(" ")
                if kind.lower() != "bearer" or not token:
                    return 401
                try:
                    status = reviews.status(token.strip(), path)
                except ApiError as error:
                    _log.warning("authorization failed path=%s error=%r", path, str(error))
                    return 503
                return 0 if status == 200 else status

            def _answer(self, status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                if status == 401:
                    self.send_header("WWW-Authenticate", "Bearer")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                _log.debug("http " + format, *args)

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in serving.address else socket.AF_INET

            def finish_request(self, request: Any, client_address: Any) -> None:
                # In the request's thread, so that a slow handshake does not block other clients.
                request.settimeout(_PATIENCE)
                with tls.wrap(request) as encrypted:
                    super().finish_request(encrypted, client_address)

            def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
                _log.debug("http connection failed client=%s", client_address, exc_info=True)

        try:
            self._server = Server((serving.address, serving.port), Handler)
        except OSError as error:
            why = f"cannot listen on {serving.address} port {serving.port}: {error.strerror}"
            raise OSError(error.errno, why) from None
        self._server.daemon_threads = True
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(_STOP_CHECK,), name="health", daemon=True)

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Start serving."""
        self._thread.start()

    def stop(self) -> None:
        """Stop serving and close the socket."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def is_open(path: str, serving: Serving) -> bool:
    """Whether the path is served without authorization."""
    if not serving.protected:
        return True
    return any(path == each or path.startswith(f"{each.removesuffix('*').rstrip('/')}/") for each in serving.open_paths)


def report(checks: Mapping[str, Check], query: str, details: Mapping[str, Check] = {}) -> tuple[int, bytes]:
    """The status and body for these checks, in the format of Kubernetes' components."""
    asked = parse_qs(query, keep_blank_values=True)
    found = {name: check() for name, check in checks.items() if name not in asked.get("exclude", [])}
    wrong = any(found.values())
    lines = "".join(f"[{'-' if why else '+'}]{name} {why or 'ok'}\n" for name, why in found.items())
    lines += "".join(f"[+]{name} {detail}\n" for name, check in details.items() if (detail := check()))
    return (503 if wrong else 200), (lines if wrong or "verbose" in asked else "ok").encode()


_WHY = {
    401: b"a bearer token that the API server accepts is required",
    403: b"the token's user is not allowed to get this path (RBAC: nonResourceURLs)",
    503: b"the API server did not answer the authorization request",
}
