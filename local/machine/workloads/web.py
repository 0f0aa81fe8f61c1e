"""A web server that names the answering pod: `registry.local/web`.

Environment: PORT (default 8080), POD_IP (the address to bind), POD_NAME, NODE_NAME.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cloud_controller.stop_signals import on_stop_signal


class Handler(BaseHTTPRequestHandler):
    """Answers every GET with the pod, the node, the path and the client's address; /healthz with `ok`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a request."""
        if self.path == "/healthz":
            self._answer(b"ok\n", "text/plain")
            return
        answer = {
            "pod": os.environ.get("POD_NAME") or os.environ["HOSTNAME"],
            "node": os.environ.get("NODE_NAME", ""),
            "path": self.path,
            "client": self.client_address[0],
        }
        self._answer(json.dumps(answer).encode() + b"\n", "application/json")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """One line per request, without health checks, which would be most of the log."""
        if self.path != "/healthz":
            sys.stdout.write(f"{self.client_address[0]} {format % args}\n")


class Server(ThreadingHTTPServer):
    """Ends with the process, whatever connections are open."""

    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    """Serve until SIGTERM."""
    host, port = os.environ.get("POD_IP"), int(os.environ.get("PORT", "8080"))
    if not host:
        raise SystemExit("POD_IP is not set: add an env with fieldRef status.podIP to the container")
    server = Server((host, port), Handler)
    on_stop_signal(server.shutdown)
    print(f"listening on {host}:{port}", flush=True)
    server.serve_forever(poll_interval=1.0)


if __name__ == "__main__":
    main()
