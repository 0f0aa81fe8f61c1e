"""A proxy in front of moto that counts calls by service and operation, and fills moto's gaps.

    python -m benchmarks.aws.proxy --port 8001 --behind http://127.0.0.1:8000 [--latency 0.05]

Both controllers call AWS through it. `GET /-/calls` returns the counts as JSON: `calls` (successful) and `failed` (by
error code) by operation, `busy` (in progress), `last` (when the latest answer was sent, in seconds of the machine's
monotonic clock). `PUT /-/limits` enforces AWS's limits on calls from then on.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from benchmarks.aws.limits import Buckets, refusal
from benchmarks.aws.moto_gaps import UNKNOWN, corrected, wrongly_refused
from benchmarks.counts import Tally

CALLS_PATH = "/-/calls"
LIMITS_PATH = "/-/limits"

_SCOPE = re.compile(r"Credential=[^/]+/[^/]+/[^/]+/(?P<service>[^/]+)/aws4_request")
_CODE = re.compile(rb"<Code>(?P<code>[^<]+)</Code>")
# ELB and ELBv2 are signed as one service, and distinguished by the version of their API.
_VERSIONS = {"2012-06-01": "elb", "2015-12-01": "elbv2"}
_HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "date", "server"})


class Headers(Protocol):
    """The interface required of a request's headers."""

    def get(self, name: str, default: str, /) -> str: ...


def operation(headers: Headers, body: bytes) -> str:
    """The operation of a signed request, as in `ec2 DescribeInstances`."""
    scope = _SCOPE.search(headers.get("Authorization", ""))
    service = scope["service"] if scope else "unsigned"
    if target := headers.get("X-Amz-Target", ""):
        return f"{service} {target.rpartition('.')[2]}"
    form = parse_qs(body.decode("utf-8", "replace"))
    version = form.get("Version", [""])[0]
    return f"{_VERSIONS.get(version, service)} {form.get('Action', ['unknown'])[0]}"


class Proxy(ThreadingHTTPServer):
    """Listens on loopback; port 0 picks a free one."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, behind: str, latency: float) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.behind = urlsplit(behind).netloc
        self.latency = latency
        self.tally = Tally()
        self.buckets: Buckets | None = None
        # moto's threads modify what others of them iterate over, and moto answers 500 then.
        self.one_at_a_time = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"
    # Head and body are sent in one segment; in two, the second would wait for the client's delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == CALLS_PATH:
            counts = json.dumps(asdict(self.server.tally.counted())).encode()
            self._answer(200, {"Content-Type": "application/json"}, counts)
        else:
            self._call()

    def do_POST(self) -> None:
        self._call()

    def do_PUT(self) -> None:
        found = self.path == LIMITS_PATH
        if found:
            self.server.buckets = Buckets()
        self._answer(204 if found else 404, {}, b"")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the counts are the log."""

    def _call(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = operation(self.headers, body)
        tally = self.server.tally
        tally.begin()
        status, headers, answer = 502, {}, b""
        try:
            time.sleep(self.server.latency)
            if self.server.buckets is not None and not self.server.buckets.take(name):
                (status, answer), headers = refusal(name), {"Content-Type": "text/xml"}
            elif name in UNKNOWN:
                status, headers, answer = 200, {"Content-Type": "text/xml"}, UNKNOWN[name]
            else:
                with self.server.one_at_a_time:
                    status, headers, answer = self._forward(body)
                    if status >= 400 and (other := wrongly_refused(name, body, answer, self._asked)) is not None:
                        status, answer = 200, other
                answer = corrected(name, answer)
        finally:
            tally.end(name, _failure(status, answer))
        self._answer(status, headers, answer)

    def _asked(self, body: bytes) -> bytes:
        return self._forward(body)[2]

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(self.server.behind, timeout=120)
        try:
            kept = {key: value for key, value in self.headers.items() if key.lower() not in _HOP_BY_HOP}
            connection.request(self.command, self.path, body, kept)
            response = connection.getresponse()
            answer = response.read()
            headers = {key: value for key, value in response.getheaders() if key.lower() not in _HOP_BY_HOP}
            return response.status, headers, answer
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _failure(status: int, body: bytes) -> str | None:
    """The code of a refusal."""
    if status < 400:
        return None
    code = _CODE.search(body)
    return code["code"].decode() if code else str(status)


def main() -> None:
    """Serve until the process is ended; the first line on stdout is the port."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aws.proxy", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--behind", required=True)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to wait before each call is forwarded")
    options = parser.parse_args()
    with Proxy(options.port, options.behind, options.latency) as proxy:
        print(proxy.server_address[1], flush=True)
        proxy.serve_forever()


if __name__ == "__main__":
    main()
