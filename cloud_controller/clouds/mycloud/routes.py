"""The pod routes in the route table of the cluster's network.

mycloud's routes carry no tags, so a route is ours if its destination lies inside the cluster's pod range and its next
hop is, or was, a machine with this cluster's tag (terminated machines stay listed for an hour). Any other is foreign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Network

from cloud_controller.cloud import CloudError, NotFound, Route, RouteFailure
from cloud_controller.clouds.mycloud.client import Client, Object, typed_error
from cloud_controller.clouds.mycloud.scope import Scope
from cloud_controller.load_balancer import CLUSTER_TAG

BATCH = 50
"""Routes that the API takes at once."""


class MyCloudRoutes:
    """The route table of one cluster's network."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self._client = client
        self._scope = scope

    def list(self) -> Sequence[Route]:
        """Every route of the table, foreign ones too."""
        routes = self._client.list(f"route_tables/{self._scope.route_table_id}/routes")
        hops = self._client.list("machines", ids={route["next_hop_machine_id"] for route in routes})
        tags = {CLUSTER_TAG: self._scope.cluster_id}
        ours = {machine["id"] for machine in hops if machine["tags"].items() >= tags.items()}
        pods = IPv4Network(self._scope.pod_cidr)
        return [
            Route(
                destination_cidr=route["destination_cidr"],
                target_instance=route["next_hop_machine_id"],
                blackhole=route["state"] == "blackhole",
                owned=route["next_hop_machine_id"] in ours and IPv4Network(route["destination_cidr"]).subnet_of(pods),
            )
            for route in routes
        ]

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Write them; one that is there already, to the same machine, is a success."""

        def body(batch: Sequence[Route]) -> Object:
            wanted = [
                {"destination_cidr": route.destination_cidr, "next_hop_machine_id": route.target_instance}
                for route in batch
            ]
            return {"routes": wanted}

        return [*self._in_batches("batch_create", routes, body)]

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        """Remove them; one that is gone already is a success."""
        failures = self._in_batches(
            "batch_delete", routes, lambda batch: {"destination_cidrs": [route.destination_cidr for route in batch]}
        )
        return [failure for failure in failures if not isinstance(failure.error, NotFound)]

    def _in_batches(
        self, verb: str, routes: Sequence[Route], body: Callable[[Sequence[Route]], Object]
    ) -> Iterator[RouteFailure]:
        path = f"route_tables/{self._scope.route_table_id}/routes:{verb}"
        for start in range(0, len(routes), BATCH):
            batch = routes[start : start + BATCH]
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
