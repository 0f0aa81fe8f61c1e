"""The pod routes in the route table of the cluster's network. Routes have no tags; the plan decides which are the
cluster's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cloud_controller.cloud import CloudError, NotFound, Route, RouteFailure
from cloud_controller.clouds.common.concurrent_calls import batches
from cloud_controller.clouds.mycloud.client import Client, Object, typed_error
from cloud_controller.clouds.mycloud.scope import Scope

BATCH = 50
"""The most routes in one call."""


class MyCloudRoutes:
    """The route table of one cluster's network."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client = client
        self._scope = scope

    def list(self) -> Sequence[Route]:
        """Every route of the table, including others'."""
        routes = self._client.list(f"route_tables/{self._scope.route_table_id}/routes")
        return [
            Route(
                destination_cidr=route["destination_cidr"],
                target_instance=route["next_hop_machine_id"],
                blackhole=route["state"] == "blackhole",
                owned=None,
            )
            for route in routes
        ]

    def quota(self) -> int | None:
        """The most routes in the table."""
        return int(self._client.get_path("quotas")["quotas"]["routes_per_table"])

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Create them; an existing route to the same machine is a success."""

        def body(batch: Sequence[Route]) -> Object:
            wanted = [
                {"destination_cidr": route.destination_cidr, "next_hop_machine_id": route.target_instance}
                for route in batch
            ]
            return {"routes": wanted}

        return [*self._in_batches("batch_create", routes, body)]

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Delete them; a missing route is a success."""
        failures = self._in_batches(
            "batch_delete", routes, lambda batch: {"destination_cidrs": [route.destination_cidr for route in batch]}
        )
        return [failure for failure in failures if not isinstance(failure.error, NotFound)]

    def _in_batches(
        self, verb: str, routes: Sequence[Route], body: Callable[[Sequence[Route]], Object]
    ) -> Iterator[RouteFailure]:
        path = f"route_tables/{self._scope.route_table_id}/routes:{verb}"
        for batch in batches(routes, BATCH):
            try:
                # Written or removed twice is written or removed once.
                results = self._client.post(path, body(batch), idempotent=True)["results"]
            except CloudError as error:
                yield from (RouteFailure(route, error) for route in batch)
                continue
            errors = {result["destination_cidr"]: result["error"] for result in results}
            for route in batch:
                if refused := errors.get(route.destination_cidr):
                    yield RouteFailure(route, typed_error(refused, f"{verb} of route {route.destination_cidr}"))
