"""Serves a stand-in over HTTP: an ASGI application, and a server of it in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from local.abortable_http import AbortableProtocol
from local.standin.standin import Answer, Request, StandIn
from local.waiting import wait_until

START_SECONDS = 30.0

Side = Callable[[Request], Answer | None]
"""Answers requests that are not the cloud's API, such as a metadata service's; None: not one of them."""


class AnswerLost(Exception):
    """An answer is to be lost, and there is no connection to end."""


class Application:
    """The ASGI application. Calls are carried out in the event loop: the stand-in answers one at a time anyway."""

    def __init__(self, standin: StandIn[Any], side: Side = lambda _: None) -> None:
        self._standin = standin
        self._side = side

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        answer = await self._answer(await _request(scope, receive))
        if answer.is_lost:
            if not AbortableProtocol.abort(scope["client"]):
                raise AnswerLost("the server does not know the connection of the client")
            return
        headers = {**answer.headers, "content-length": str(len(answer.body))}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, request: Request) -> Answer:
        aside = self._side(request)
        if aside is not None:
            return aside
        received = self._standin.receive(request)
        if isinstance(received, Answer):
            return received
        if received.delay:
            await asyncio.sleep(received.delay)
        return received.carry_out()


async def _request(scope: Any, receive: Any) -> Request:
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    path, query = scope["path"], scope["query_string"].decode("latin-1")
    return Request(scope["method"], path, query, headers, body, scope["client"][0])


def config(application: Application, host: str, port: int) -> uvicorn.Config:
    """Of a server that tests and sites run."""
    return uvicorn.Config(
        application,
        host=host,
        port=port,
        http=AbortableProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_config=None,
        # Longer than clients leave a connection unused, so that none is closed under a request.
        timeout_keep_alive=300,
        timeout_graceful_shutdown=1,
    )


@contextmanager
def serving(application: Application, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Its URL, while a thread serves it."""
    server = uvicorn.Server(config(application, host, port))
    thread = threading.Thread(target=server.run, name="stand-in", daemon=True)
    thread.start()
    try:
        if not wait_until(lambda: server.started or not thread.is_alive(), START_SECONDS) or not server.started:
            raise RuntimeError(f"the stand-in did not start on {host}:{port}")
        bound = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://{host}:{bound}"
    finally:
        server.should_exit = True
        thread.join()
