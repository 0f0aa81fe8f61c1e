"""Serves one service: `serve.py SERVICE PORT [ARGUMENT…]`, where the service reads its own arguments.

One thread: SQLite has one writer. Requests below /peer change what no user of the service may: `peer` of the module
`SERVICE_peer` beside this one answers them.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

import sqlalchemy.pool
from sqlalchemy import orm
from waitress import serve

APPLICATIONS = {
    "keystone": "keystone.wsgi.api",
    "neutron": "neutron.wsgi.api",
    "octavia": "octavia.wsgi.api",
    "nova": "nova.wsgi.osapi_compute",
}
PEERS = {"octavia": "octavia_peer", "nova": "nova_peer"}

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def with_peer(application: Wsgi, peer: Any) -> Wsgi:
    """The service, and what the peer adds: `before` each request, and `answer` to those below /peer."""

    def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        peer.before()
        path = environ["PATH_INFO"]
        if not path.startswith("/peer/"):
            return application(environ, start_response)
        body = json.loads(environ["wsgi.input"].read() or "{}")
        answer = json.dumps(peer.answer(environ["REQUEST_METHOD"], path.split("/")[2:], body)).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))])
        return [answer]

    return served


def reading_at_once(relationship: Callable[..., Any]) -> Callable[..., Any]:
    """With the loader `selectin` instead of `subquery`: it reads the same, without making its query anew each time."""

    def made(*arguments: Any, lazy: str = "select", **more: Any) -> Any:
        return relationship(*arguments, lazy="selectin" if lazy == "subquery" else lazy, **more)

    return made


def main() -> None:
    """Serve until the process is ended."""
    name, port = sys.argv[1], int(sys.argv[2])
    sys.argv = [name, *sys.argv[3:]]
    # oslo.db would open the file and read its schema again for every transaction.
    sqlalchemy.pool.NullPool = sqlalchemy.pool.QueuePool
    orm.relationship, orm.backref = reading_at_once(orm.relationship), reading_at_once(orm.backref)
    orm.subqueryload = orm.selectinload
    application = importlib.import_module(APPLICATIONS[name]).application
    if name in PEERS:
        application = with_peer(application, importlib.import_module(PEERS[name]))
    # Among what has been imported is no garbage.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    serve(application, host="127.0.0.1", port=port, threads=1)


if __name__ == "__main__":
    main()
