"""Checks at the start that the credentials are accepted, and that the project may read what the controllers need."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cloud_controller.cloud import AccessDenied, InvalidConfiguration, NotFound
from cloud_controller.clouds.openstack.client import OpenStackClient

_READS: Mapping[str, tuple[str, str]] = {
    "node": ("compute", "servers?limit=1"),
    "node-lifecycle": ("compute", "servers?limit=1"),
    "service": ("load-balancer", "lbaas/loadbalancers?limit=1"),
}
"""What tells whether a controller's service is there and lets the credentials in. What they may write, no API tells."""


def check(client: OpenStackClient, controllers: Collection[str], router_id: str | None) -> None:
    """Raise AccessDenied that names all that is refused, or InvalidConfiguration for a router that is not there."""
    wanted = {_READS[each]: each for each in controllers if each in _READS}
    if "route" in controllers and router_id is not None:
        wanted["network", f"routers/{router_id}"] = "route"
    denied: list[str] = []
    for (service, path), controller in wanted.items():
        try:
            client.get(service, path)
        except AccessDenied as error:
            denied.append(f"{error} (needed by {controller})")
        except NotFound:
            if service != "network":
                raise
            raise InvalidConfiguration(
                "cloud config: [Route] router-id", f"router {router_id} does not exist, or is not this project's"
            ) from None
    if denied:
        raise AccessDenied("; ".join(denied))
