"""Which rights at mycloud each controller needs, and whether a token has them: one table, asked once at the start."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.scope import Scope

_TABLE = "/v1/route_tables/{table}/routes"
_LB = "/v1/load_balancers"
_READS: Mapping[str, tuple[str, ...]] = {
    "node": ("GET /v1/machines", "GET /v1/machines/ID"),
    "node-lifecycle": ("GET /v1/machines", "GET /v1/machines/ID"),
    "route": (
        "GET /v1/machines",
        "GET /v1/machines/ID",
        "GET /v1/networks/{network}",
        "GET /v1/quotas",
        f"GET {_TABLE}",
    ),
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
    table = "ID"
    network = f"GET /v1/networks/{scope.network_id}"
    if "route" in controllers and not _denied(client, [network]):
        table = scope.route_table_id
    needed = {
        name: {
            operation.format(network=scope.network_id, table=table)
            for operation in operations(name, read_only=read_only)
        }
        for name in controllers
    }
    if denied := _denied(client, sorted(set().union(*needed.values()))):
        why = ", ".join(name for name in controllers if needed[name] & {*denied})
        raise AccessDenied(f"mycloud: the token lacks the right to {', '.join(denied)} (needed by {why})")


def operations(controller: str, *, read_only: bool) -> list[str]:
    """`METHOD PATH` of everything that the controller asks of mycloud; `{network}` and `{table}` are left open."""
    tables = (_READS,) if read_only else (_READS, _WRITES)
    return [operation for table in tables for operation in table.get(controller, ())]


def _denied(client: Client, asked: list[str]) -> list[str]:
    answer = client.post("access:check", {"operations": asked}, idempotent=True)
    return [str(operation) for operation in answer["denied"]]
