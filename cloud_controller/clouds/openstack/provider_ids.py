"""Maps nodes to their servers by provider ID: `openstack:///ID`, `openstack://REGION/ID`, or the ID alone."""

from __future__ import annotations

import re

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.openstack.names import PROVIDER_NAME

_PROVIDER_ID = re.compile(
    rf"(?:{PROVIDER_NAME}://(?P<region>[^/]*)/)?(?P<id>[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}})"
)
_ALLOWED = "openstack:///ID, openstack://REGION/ID or ID"


def provider_id(region: str, server: str, *, regional: bool) -> str:
    """The provider ID of a server; `regional`: with its region."""
    return f"{PROVIDER_NAME}://{region if regional else ''}/{server}"


def server_id(ref: InstanceRef, region: str) -> str | None:
    """The ID of the node's server; None if it has no provider ID.

    Raises InvalidConfiguration for the provider ID of another cloud or region: that the server is not here says
    nothing about it.
    """
    if not ref.provider_id:
        return None
    field = f"node {ref.node_name}: spec.providerID"
    found = _PROVIDER_ID.fullmatch(ref.provider_id)
    if found is None:
        raise InvalidConfiguration(field, f"{ref.provider_id!r} is not a provider ID of OpenStack", _ALLOWED)
    if found["region"] and found["region"] != region:
        raise InvalidConfiguration(field, f"{ref.provider_id!r} is not in {region or 'the only region'}", _ALLOWED)
    return found["id"]
