"""Handles every request before its endpoint: token, injected faults, call counters.

A plain ASGI middleware. A dropped answer is a connection that ends without one byte.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from local.http_server import end_connection
from local.mycloud.access import SITES_OWN, Access, access_of, is_same
from local.mycloud.context import Context
from local.mycloud.errors import ApiError, Throttled, Unauthorized

OPEN_PATHS = frozenset({"/healthz", "/openapi.json", "/docs"})
"""Paths that need no token."""


class Gate:
    """The middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, operations: Iterable[str]) -> None:
        self._app = app
        self._patterns = _patterns(operations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        context: Context = scope["app"].state.context
        operation = f"{scope['method']} {scope['path']}"
        try:
            access = await _access(context, _bearer_token(scope))
            context.calls.count(self._template(operation))
            access.require(operation)
        except ApiError as error:
            await error_answer(error)(scope, receive, send)
            return
        scope["access"] = access
        met = context.faults.meet(operation)
        if met.delay:
            # The call has arrived: a slow cloud carries it out even if the caller no longer waits.
            receive = await _arrived(receive)
            await asyncio.sleep(met.delay)
        if met.error is not None:
            await error_answer(met.error)(scope, receive, send)
        elif met.drops_answer:
            await self._drop_answer(scope, receive)
        else:
            await self._app(scope, receive, send)

    def _template(self, operation: str) -> str:
        for pattern, template in self._patterns:
            if pattern.fullmatch(operation):
                return template
        return "(no such operation)"

    async def _drop_answer(self, scope: Scope, receive: Receive) -> None:
        async def swallow(_: Message) -> None:
            """Discard the endpoint's answer."""

        await self._app(scope, receive, swallow)
        await end_connection(scope, receive)


async def _access(context: Context, token: str) -> Access:
    if is_same(token, context.token):
        return SITES_OWN
    return await run_in_threadpool(access_of, context.store, token)


def _bearer_token(scope: Scope) -> str:
    """The token of the request, or an empty one, which is always invalid."""
    header: bytes = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    kind, _, token = header.partition(b" ")
    return token.strip().decode("latin-1") if kind.lower() == b"bearer" else ""


async def _arrived(receive: Receive) -> Receive:
    """Receive the whole request; returns what passes it to the application."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    kept = iter(messages)

    async def replay() -> Message:
        return next(kept, None) or await receive()

    return replay


def error_answer(error: ApiError) -> JSONResponse:
    """The HTTP answer for an error."""
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
