"""Serves HTTP, by uvicorn: an ASGI application, or a function that answers whole requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from local.http_messages import Answer, Request
from local.waiting import wait_until

START_SECONDS = 60.0
IDLE_SECONDS = 5
"""Of connections to a server that a machine ends with all it has."""


class Application:
    """The ASGI application that answers every request by `answer`, in the event loop."""

    def __init__(self, answer: Callable[[Request], Awaitable[Answer]]) -> None:
        self.answer = answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        answer = await self.answer(await _request(scope, receive))
        if answer.is_lost:
            await end_connection(scope, receive)
            return
        headers = {**answer.headers, "content-length": str(len(answer.body))}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body})


async def _request(scope: Any, receive: Any) -> Request:
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return Request(scope["method"], path, query, headers, body, scope["client"][0])


class UnknownConnection(Exception):
    """An answer is to be lost, and there is no connection to end, as in a test without a socket."""


class _Protocol(H11Protocol):
    """Knows the transport of each connection, which ASGI itself does not offer."""

    transports: ClassVar[WeakValueDictionary[Any, asyncio.Transport]] = WeakValueDictionary()
    """Of all servers of the process, by the addresses of both ends as ASGI gives them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        self.transports[get_local_addr(transport), get_remote_addr(transport)] = transport
        super().connection_made(transport)


async def end_connection(scope: Any, receive: Any) -> None:
    """Reset the connection of a request without one byte, as a broken network does. Raises UnknownConnection."""
    transport = _Protocol.transports.get((scope["server"], scope["client"]))
    if transport is None:
        raise UnknownConnection(f"there is no connection of {scope['client']}")
    transport.abort()
    while (await receive())["type"] != "http.disconnect":
        continue


def config(
    application: Any,
    host: str,
    port: int = 0,
    *,
    lifespan: Any = "off",
    ws: Any = "none",
    idle_seconds: int = 600,
    **tls: Any,
) -> uvicorn.Config:
    """Of every server here. Port 0: any free one. `tls`: uvicorn's `ssl_…`.

    `idle_seconds`: longer than clients leave a connection unused, so that none is closed under a request; few where a
    server's end waits for its connections, as `listening`'s does.
    """
    return uvicorn.Config(
        application,
        host=host,
        port=port,
        http=_Protocol,
        ws=ws,
        lifespan=lifespan,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        log_level="warning",  # otherwise each `kubectl exec` would be logged, with the secrets in its arguments
        timeout_keep_alive=idle_seconds,
        timeout_graceful_shutdown=1,
        **tls,
    )


def run(served: uvicorn.Config) -> None:
    """Serve until SIGTERM."""
    uvicorn.Server(served).run()


@contextmanager
def serving(served: uvicorn.Config) -> Iterator[str]:
    """Its URL, while a thread serves it."""
    server = uvicorn.Server(served)
    thread = threading.Thread(target=server.run, name="HTTP server", daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive(), START_SECONDS)
        if not server.started:
            raise RuntimeError(f"the server did not start on {served.host}:{served.port}")
        bound = server.servers[0].sockets[0].getsockname()[1]
        yield f"{'https' if served.is_ssl else 'http'}://{served.host}:{bound}"
    finally:
        server.should_exit = True
        thread.join()


async def listening(served: uvicorn.Config) -> asyncio.Server:
    """A server on the running loop, until it is closed. Raises OSError if the port cannot be bound."""
    if not served.loaded:  # at a second try it is
        served.load()
    state = ServerState()
    # Not by uvicorn's Server, which would install its own signal handlers.
    return await asyncio.get_running_loop().create_server(
        lambda: _Protocol(served, state, {}), served.host, served.port, ssl=served.ssl
    )
