"""The kubelet's API for `kubectl logs` and `kubectl exec`: HTTPS on the machine's address, for the API server alone.

DANGER: exec runs any command as this machine's user. A client must show a certificate of a CA whose only other holder
is the API server, which authorizes its users.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from local.addresses import socket_address
from local.http_server import IDLE_SECONDS, config, listening
from local.machine import exec_session
from local.machine.backoff import Backoff
from local.machine.container import Container
from local.machine.container_log import read_log

_log = logging.getLogger(__name__)

PORT = 10250
"""The port at which the API server expects kubelets."""

_UNKNOWN_TO_LOGS = {
    "previous": "a container's log includes its earlier runs; omit the option",
    "sinceSeconds": "the lines of a log have no timestamps",
    "sinceTime": "the lines of a log have no timestamps",
    "timestamps": "the lines of a log have no timestamps",
}


@dataclass(frozen=True, slots=True)
class Found:
    """A container of a pod that is bound to this machine; `container` is None if it ended before the last boot."""

    log: Path
    container: Container | None


Find = Callable[[str, str, str], Found | None]
"""By namespace, pod and container."""


async def serve(directory: Path, address: str, find: Find) -> None:
    """Serve until cancelled; a port in use is tried again."""
    served = config(
        application(find),
        socket_address(address),
        PORT,
        ws="websockets-sansio",
        idle_seconds=IDLE_SECONDS,
        ssl_certfile=directory / "kubelet.crt",
        ssl_keyfile=directory / "kubelet.key",
        ssl_ca_certs=str(directory / "kubelet-client-ca.crt"),
        ssl_cert_reqs=ssl.CERT_REQUIRED,
    )
    backoff = Backoff()
    while True:
        try:
            server = await listening(served)
        except OSError as error:
            _log.error("kubelet API not served port=%d error=%r", PORT, str(error))
            await asyncio.sleep(backoff.next())
            continue
        async with server:
            await server.serve_forever()


def application(find: Find) -> Starlette:
    """The API over the containers that `find` knows."""

    def found(connection: HTTPConnection) -> Found:
        namespace, pod, container = (connection.path_params[key] for key in ("namespace", "pod", "container"))
        it = find(namespace, pod, container)
        if it is None:
            raise HTTPException(404, f"this machine has no pod {namespace}/{pod} with a container {container}")
        return it

    async def logs(request: Request) -> Response:
        it, query = found(request), request.query_params
        for key, why in _UNKNOWN_TO_LOGS.items():
            if key in query:
                raise HTTPException(400, f"{key} is not supported by this machine: {why}")
        if query.get("stream", "All") != "All":
            raise HTTPException(400, f"stream is {query['stream']!r}; allowed: All (stdout and stderr share a log)")
        if not it.log.exists():
            raise HTTPException(400, f"container {request.path_params['container']} has not started yet")
        container = it.container
        follow = (lambda: container.is_running) if container is not None and query.get("follow") == "true" else None
        tail, limit = (int(query[key]) if key in query else None for key in ("tailLines", "limitBytes"))
        return StreamingResponse(read_log(it.log, tail=tail, limit=limit, follow=follow), media_type="text/plain")

    async def run(websocket: WebSocket) -> None:
        container, query = found(websocket).container, websocket.query_params
        if container is None or not container.is_running:
            raise HTTPException(400, f"container {websocket.path_params['container']} is not running")
        if exec_session.PROTOCOL not in websocket.scope["subprotocols"]:
            raise HTTPException(400, f"exec supports only {exec_session.PROTOCOL}, which kubectl 1.31 and newer use")
        await websocket.accept(exec_session.PROTOCOL)
        argv = tuple(query.getlist("command"))
        wanted = exec_session.ExecRequest(argv, query.get("input") == "1", query.get("tty") == "1")
        await exec_session.run(websocket, container, wanted)

    return Starlette(
        routes=[
            Route("/containerLogs/{namespace}/{pod}/{container}", logs),
            WebSocketRoute("/exec/{namespace}/{pod}/{container}", run),
            Route("/exec/{rest:path}", _refuse_spdy, methods=["GET", "POST"]),
            Route("/{call}/{rest:path}", _refuse, methods=["GET", "POST"]),
            WebSocketRoute("/{call}/{rest:path}", _refuse),
        ]
    )


async def _refuse_spdy(_: HTTPConnection) -> NoReturn:
    # No colon: clients of SPDY would parse the text as a YAML object, and show nothing of it.
    raise HTTPException(501, "exec over SPDY is not supported by this machine; kubectl 1.31 and newer use WebSocket")


async def _refuse(connection: HTTPConnection) -> NoReturn:
    raise HTTPException(501, f"{connection.path_params['call']} is not supported by this machine; use logs or exec")
