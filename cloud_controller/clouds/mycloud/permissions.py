"""The operations of mycloud that each controller calls, in one table.

A test compares it with the code, in both directions. `ID` stands for any ID, `{network}` and `{table}` for the
cluster's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_TABLE = "/v1/route_tables/{table}/routes"
_LB = "/v1/load_balancers"
_LISTED = "GET /v1/machines"
"""Tells every controller whose cluster this is."""
_ALL = ("GET /v1/clusters/ID", _LISTED)
_MACHINES = ("GET /v1/machines/ID",)
_READS: Mapping[str, tuple[str, ...]] = {
    "node": _MACHINES,
    "node-lifecycle": _MACHINES,
    "route": (*_MACHINES, "GET /v1/networks/{network}", "GET /v1/quotas", f"GET {_TABLE}"),
    "service": (f"GET {_LB}", f"GET {_LB}/ID", f"GET {_LB}/ID/health"),
    "volume": ("GET /v1/volumes", "GET /v1/volumes/ID"),
}
_WRITES: Mapping[str, tuple[str, ...]] = {
    "route": (f"POST {_TABLE}:batch_create", f"POST {_TABLE}:batch_delete"),
    "service": (
        f"POST {_LB}",
        f"PATCH {_LB}/ID",
        f"DELETE {_LB}/ID",
        f"PUT {_LB}/ID/listeners/ID/ID",
        f"DELETE {_LB}/ID/listeners/ID/ID",
        f"PUT {_LB}/ID/backend_sets/ID",
        f"DELETE {_LB}/ID/backend_sets/ID",
        f"POST {_LB}/ID/backend_sets/ID/backends:batch_register",
        f"POST {_LB}/ID/backend_sets/ID/backends:batch_deregister",
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


def operations(controller: str, *, read_only: bool = False) -> list[str]:
    """`METHOD PATH` of every operation of the controller, with placeholders `{network}` and `{table}`."""
    tables = (_READS,) if read_only else (_READS, _WRITES)
    return [*_ALL, *(operation for table in tables for operation in table.get(controller, ()))]


def globs(controllers: Collection[str] = tuple(_READS)) -> list[str]:
    """The operations that a token must allow for these controllers, for any network and route table."""
    found = {each.format(network="ID", table="ID") for name in controllers for each in operations(name)}
    return sorted(each.replace("/ID", "/*") for each in found)
