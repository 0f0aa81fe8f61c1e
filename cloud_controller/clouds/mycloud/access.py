"""Checks at start that the token has the permissions that the controllers need."""

from __future__ import annotations

from collections.abc import Collection

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.clouds.mycloud.permissions import operations
from cloud_controller.clouds.mycloud.scope import Scope


def check(client: Client, scope: Scope, controllers: Collection[str], *, read_only: bool) -> None:
    """Raise AccessDenied that names the operations that the controllers need and the token does not allow."""
    scope.cluster()  # A wrong token or cluster is told as such.
    needed = _needed(client, scope, controllers, read_only=read_only)
    if denied := _denied(client, sorted(set().union(*needed.values()))):
        why = ", ".join(name for name in controllers if needed[name] & {*denied})
        raise AccessDenied(f"mycloud: the token does not allow {', '.join(denied)} (needed by {why})")


def lacking(client: Client, scope: Scope, controllers: Collection[str]) -> list[str]:
    """The operations that the controllers need and the token does not allow."""
    needed = _needed(client, scope, controllers, read_only=False)
    return _denied(client, sorted(set().union(*needed.values())))


def _needed(client: Client, scope: Scope, controllers: Collection[str], *, read_only: bool) -> dict[str, set[str]]:
    table = "ID"
    if "route" in controllers and not _denied(client, [f"GET /v1/networks/{scope.network_id}"]):
        table = scope.route_table_id
    return {
        name: {
            operation.format(network=scope.network_id, table=table)
            for operation in operations(name, read_only=read_only)
        }
        for name in controllers
    }


def _denied(client: Client, asked: list[str]) -> list[str]:
    answer = client.post("access:check", {"operations": asked}, idempotent=True)
    return [str(operation) for operation in answer["denied"]]
