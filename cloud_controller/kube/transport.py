"""HTTP requests to the API server: connection pool, timeouts and errors."""

from __future__ import annotations

import copy
import math
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from cloud_controller import fenced_http, kube_errors, retries
from cloud_controller.fence import Fence, unfenced
from cloud_controller.kube.config import Connection
from cloud_controller.kube.exec_credentials import ExecToken
from cloud_controller.kube.rate_limit import RateLimit
from cloud_controller.retries import RetryPolicy

_POOL_SIZE = 32
_USER_AGENT = "cloud-controller/0.1"
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""A warning in a response's headers (RFC 7234)."""

# Keepalives detect a vanished peer within a minute, even on a silent watch.
_SOCKET_OPTIONS: list[tuple[int, int, int]] = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]


class Transport:
    """Requests to one server with one identity. Thread-safe.

    Retries reads after connection errors, and any request after 429 with Retry-After.
    """

    def __init__(
        self,
        connection: Connection,
        rate_limit: RateLimit | None = None,
        *,
        connect_timeout: float = 5.0,
        read_timeout: float = 30.0,
        attempts: int = 4,
    ) -> None:
        self._connection = connection
        self._rate_limit = rate_limit
        self._timeout = urllib3.Timeout(connect=connect_timeout, read=read_timeout)
        self._connect_timeout = connect_timeout
        self._policy = RetryPolicy(deadline=math.inf, attempts=attempts, longest_retry_after=30.0)
        self._pool = _pool(connection)
        self._fence: Fence = unfenced
        self._hear: Callable[[str], None] | None = None

    def fenced(self, fence: Fence) -> Transport:
        """A transport with a fence, on the same connections."""
        fenced = copy.copy(self)
        fenced._fence = fence
        return fenced

    def hearing(self, hear: Callable[[str], None]) -> Transport:
        """A transport that passes on the warnings of answers, on the same connections."""
        hearing = copy.copy(self)
        hearing._hear = hear
        return hearing

    @property
    def server(self) -> str:
        """The server's URL."""
        return self._connection.server

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> urllib3.BaseHTTPResponse:
        """Send a request with a JSON body and read the whole response. Raises `ApiError` unless it succeeds."""
        data = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"Content-Type": content_type}
        return self._request(method, path, query, data, headers, self._timeout, f"{method} {path}")

    def stream(self, path: str, query: Mapping[str, str], asked: str, read_timeout: float) -> urllib3.BaseHTTPResponse:
        """Send a GET whose response is streamed."""
        timeout = urllib3.Timeout(connect=self._connect_timeout, read=read_timeout)
        return self._request("GET", path, query, None, {}, timeout, asked, stream=True)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.close()

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        data: bytes | None,
        headers: dict[str, str],
        timeout: urllib3.Timeout,
        asked: str,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        url = self._connection.path + (f"{path}?{urlencode(query)}" if query else path)

        def attempt(_: int) -> urllib3.BaseHTTPResponse:
            if self._rate_limit is not None:
                self._rate_limit.wait()
            try:
                sent = self._headers(headers)
                with fenced_http.checking(unfenced if method == "GET" else self._fence):
                    response = self._pool.urlopen(
                        method,
                        url,
                        body=data,
                        headers=sent,
                        timeout=timeout,
                        retries=False,
                        redirect=False,
                        preload_content=not stream,
                    )
            except (urllib3.exceptions.HTTPError, OSError) as error:
                raise self._unreachable(asked, error) from error
            if response.status < 300:
                if self._hear is not None:
                    for text in _WARNING.findall(", ".join(response.headers.getlist("Warning"))):
                        self._hear(re.sub(r"\\(.)", r"\1", text))
                return response
            if response.status == 401 and isinstance(self._connection.token, ExecToken):
                self._connection.token.forget(sent["Authorization"].removeprefix("Bearer "))
            raise _failure(response, asked)

        return retries.call(attempt, self._policy, idempotent=method == "GET")

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        common = {"Accept": "application/json", "User-Agent": _USER_AGENT}
        if self._connection.token is not None:
            token = self._connection.token()
            if not (token.isascii() and token.isprintable()):
                # Refused here because the HTTP library's own error would quote it.
                why = "the token is not valid in an HTTP header; allowed: one line of printable ASCII"
                raise kube_errors.UnauthorizedError(401, "Unauthorized", why)
            common["Authorization"] = f"Bearer {token}"
        return common | headers

    def _unreachable(self, asked: str, error: Exception) -> kube_errors.UnreachableError:
        text = f"cannot reach API server {self.server} ({asked}): {_root(error)}"
        # A load balancer without an API server behind it ends the connection, which says nothing of certificates.
        if isinstance(error, urllib3.exceptions.SSLError) and not isinstance(error.args[0], ssl.SSLEOFError):
            return kube_errors.TlsError(f"{text}; is the kubeconfig for another or an earlier cluster?")
        if isinstance(error, urllib3.exceptions.NewConnectionError):
            text += "; is it running, and is the address correct?"
        return kube_errors.UnreachableError(text)


def _pool(connection: Connection) -> urllib3.HTTPConnectionPool:
    if connection.tls is None:
        pool = fenced_http.POOLS["http"](connection.host, connection.port, maxsize=_POOL_SIZE)
    else:
        pool = fenced_http.POOLS["https"](
            connection.host,
            connection.port,
            maxsize=_POOL_SIZE,
            ssl_context=connection.tls,
            server_hostname=connection.server_name,
            assert_hostname=connection.server_name,
        )
    pool.conn_kw["socket_options"] = _SOCKET_OPTIONS
    return pool


def _failure(response: urllib3.BaseHTTPResponse, asked: str) -> kube_errors.ApiError:
    body = response.data
    response.release_conn()
    header = response.headers.get("Retry-After")
    retry_after = None if header is None else retries.retry_after(header)
    return kube_errors.from_response(response.status, body, asked, retry_after)


def _root(error: BaseException) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _root(reason)
    return str(error).rpartition(": ")[2] or type(error).__name__
