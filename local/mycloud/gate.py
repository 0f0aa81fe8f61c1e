"""What every request passes before its endpoint: the token, the faults that tests switched on, the call counters.

A plain ASGI middleware. A dropped answer is a connection that ends without one byte: the server's protocol class
(`AbortableProtocol`) knows the transport of each client, which ASGI itself does not offer.
"""

from __future__ import annotations

import fnmatch
import hmac
import re
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from local.mycloud.errors import ApiError, Throttled, Unauthorized
from local.mycloud.models import Fault

OPEN_PATHS = frozenset({"/healthz", "/openapi.json", "/docs"})
"""What is answered without a token."""

_HARMLESS = "/v1/admin/"
"""Faults never hit the endpoints that switch them off."""


class AnswerDropped(Exception):
    """A `drop_answer` fault, where there is no connection to close (in-process tests)."""


class Faults:
    """The faults that are switched on, oldest first. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Switch a fault on."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Switch all faults off."""
        with self._lock:
            self._faults.clear()

    def all(self) -> list[Fault]:
        """The faults with what is left of their counts."""
        with self._lock:
            return [fault.model_copy() for fault in self._faults]

    def take(self, operation: str) -> Fault | None:
        """The first fault that an operation ("METHOD PATH") meets, used up by one."""
        with self._lock:
            for fault in self._faults:
                if fnmatch.fnmatchcase(operation, fault.operation):
                    fault.count -= 1
                    if fault.count == 0:
                        self._faults.remove(fault)
                    return fault
        return None


class Calls:
    """How often each operation was called since the start, by `METHOD /route/template`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def count(self, operation: str) -> None:
        """One more call."""
        with self._lock:
            self._counts[operation] += 1

    def all(self) -> dict[str, int]:
        """The counts so far."""
        with self._lock:
            return dict(self._counts)


class AbortableProtocol(H11Protocol):
    """Uvicorn's HTTP protocol that can end a client's connection without an answer."""

    _transports: dict[tuple[str, int], Any] = {}  # noqa: RUF012 - one table for all connections of the process

    def connection_made(self, transport: Any) -> None:
        self._transports[transport.get_extra_info("peername")] = transport
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transports.pop(self.transport.get_extra_info("peername"), None)
        super().connection_lost(exc)

    @classmethod
    def abort(cls, client: tuple[str, int] | None) -> bool:
        """Reset the connection of this client; False if there is none."""
        transport = cls._transports.get(client) if client is not None else None
        if transport is None:
            return False
        transport.abort()
        return True


class Gate:
    """The middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, operations: Iterable[str], token: str, faults: Faults, calls: Calls) -> None:
        self._app = app
        self._patterns = _patterns(operations)
        self._token = token.encode()
        self._faults = faults
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        if not self._is_authorized(scope):
            await error_answer(Unauthorized("the bearer token is missing or wrong"))(scope, receive, send)
            return
        operation = f"{scope['method']} {scope['path']}"
        self._calls.count(self._template(operation))
        fault = None if scope["path"].startswith(_HARMLESS) else self._faults.take(operation)
        if fault is None:
            await self._app(scope, receive, send)
        elif fault.kind == "throttle":
            await error_answer(Throttled("too many calls (a fault that was switched on)", fault.retry_after))(
                scope, receive, send
            )
        else:
            await self._drop_answer(scope, receive)

    def _is_authorized(self, scope: Scope) -> bool:
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, token = header.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)

    def _template(self, operation: str) -> str:
        for pattern, template in self._patterns:
            if pattern.fullmatch(operation):
                return template
        return "(no such operation)"

    async def _drop_answer(self, scope: Scope, receive: Receive) -> None:
        async def swallow(_: Message) -> None:
            """What the endpoint answers is lost."""

        await self._app(scope, receive, swallow)
        if not AbortableProtocol.abort(scope.get("client")):
            raise AnswerDropped(f"{scope['method']} {scope['path']}")
        while (await receive())["type"] != "http.disconnect":
            continue


def error_answer(error: ApiError) -> JSONResponse:
    """The HTTP answer of a refusal."""
    headers = {}
    if isinstance(error, Throttled):
        headers["Retry-After"] = f"{error.retry_after:g}"
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": error.detail.model_dump(exclude_none=True)}, error.status, headers)


def _patterns(operations: Iterable[str]) -> list[tuple[re.Pattern[str], str]]:
    """Each operation ("METHOD /route/{template}") as a pattern over "METHOD PATH"; the literal ones first."""
    literal_first = sorted(operations, key=lambda operation: operation.count("{"))
    return [(re.compile(re.sub(r"\\\{[^/]+?\\\}", "[^/]+", re.escape(each))), each) for each in literal_first]
