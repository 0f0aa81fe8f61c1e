"""Stands in for Keystone and Barbican, as far as a kubeconfig is read: Barbican is not among the services here.

Like Barbican's own code, it gives a payload of text only to those that ask for text.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class KeyManager:
    """`secrets`: names and payloads, the newest first."""

    def __init__(self) -> None:
        self.secrets: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> KeyManager:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self) -> dict[str, Any]:
        endpoint = {"interface": "public", "region_id": "R", "url": self.url}
        catalog = [{"type": "key-manager", "endpoints": [endpoint]}]
        return {"token": {"expires_at": "2099-01-01T00:00:00Z", "project": {"id": "p"}, "catalog": catalog}}

    def answer(self, path: str, accept: str) -> tuple[int, bytes]:
        """What Barbican says to a GET."""
        url = urlsplit(path)
        if url.path == "/v1/secrets":
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            assert query["sort"] == "created:desc"
            found = [
                {"name": name, "secret_ref": f"http://behind-a-proxy.invalid/v1/secrets/{index}"}
                for index, (name, _) in enumerate(self.secrets)
                if name == query["name"]
            ]
            return 200, json.dumps({"secrets": found[: int(query["limit"])]}).encode()
        index = int(url.path.removeprefix("/v1/secrets/").removesuffix("/payload"))
        return (200, self.secrets[index][1].encode()) if accept == "text/plain" else (406, b"{}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        manager = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._send(201, json.dumps(manager.token()).encode(), {"X-Subject-Token": "a-token"})

            def do_GET(self) -> None:
                known = self.headers["X-Auth-Token"] == "a-token"
                status, body = manager.answer(self.path, self.headers["Accept"]) if known else (401, b"{}")
                self._send(status, body, {})

            def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
