"""Which rights at mycloud each controller needs, and whether a token has them: one table, asked once at the start."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.scope import Scope

_TABLE = "/v1/route_tables/{table}/routes"
_LB = "/v1/load_balancers"
_READS: Mapping[str, tuple[str, ...]] = {
    "node": ("GET /v1/machines",),
    "node-lifecycle": ("GET /v1/machines",),
    "route": ("GET /v1/machines", "GET /v1/networks/{network}", "GET /v1/quotas", f"GET {_TABLE}"),
    "service": ("GET /v1/machines", f"GET {_LB}"),
    "volume": ("GET /v1/volumes", "GET /v1/volumes/ID"),
}
_WRITES: Mapping[str, tuple[str, ...]] = {
    "route": (f"POST {_TABLE}:batch_create", f"POST {_TABLE}:batch_delete"),
    "service": (
        f"POST {_LB}",
        f"PATCH {_LB}/ID",
        f"DELETE {_LB}/ID",
        f"PUT {_LB}/ID/listeners/TCP/80",
        f"DELETE {_LB}/ID/listeners/TCP/80",
        f"PUT {_LB}/ID/backend_sets/NAME",
        f"DELETE {_LB}/ID/backend_sets/NAME",
        f"POST {_LB}/ID/backend_sets/NAME/backends:batch_register",
        f"POST {_LB}/ID/backend_sets/NAME/backends:batch_deregister",
    ),
    "volume": (
        "POST /v1/volumes",
        "PATCH /v1/volumes/ID",
        "DELETE /v1/volumes/ID",
        "POST /v1/volumes/ID:attach",
        "POST /v1/volumes/ID:detach",
        "POST /v1/volumes/ID:resize",
    ),
}


def check(client: Client, scope: Scope, controllers: Collection[str], *, read_only: bool) -> None:
    """Raise AccessDenied that names the operations which this token may not do, though these controllers do them."""
    scope.cluster()  # A wrong token or cluster is told as such.
    needed = operations(controllers, read_only=read_only)
    table = "ID"
    network = f"GET /v1/networks/{scope.network_id}"
    if any("{table}" in operation for operation in needed) and not _denied(client, [network]):
        table = scope.route_table_id
    denied = _denied(client, [operation.format(network=scope.network_id, table=table) for operation in needed])
    if denied:
        why = f"needed by {', '.join(sorted(controllers))}"
        raise AccessDenied(f"mycloud: the token lacks the right to {', '.join(denied)} ({why})")


def operations(controllers: Collection[str], *, read_only: bool) -> list[str]:
    """`METHOD PATH` of everything that these controllers ask of mycloud, sorted; `{network}` and `{table}` are open."""
    tables = (_READS,) if read_only else (_READS, _WRITES)
    return sorted({operation for table in tables for name in controllers for operation in table.get(name, ())})


def _denied(client: Client, asked: list[str]) -> list[str]:
    answer = client.post("access:check", {"operations": asked}, idempotent=True)
    return [str(operation) for operation in answer["denied"]]
