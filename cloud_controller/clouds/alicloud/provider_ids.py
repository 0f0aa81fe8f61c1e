"""Maps nodes to their machines on Alibaba Cloud, by provider ID, and says which nodes are left alone."""

from __future__ import annotations

import re

from cloud_controller.cloud import InstanceRef, InvalidConfiguration
from cloud_controller.clouds.alicloud.names import PROVIDER_NAME, ProviderIdFormat
from cloud_controller.load_balancers.model import Object

_ALLOWED = "REGION.i-…, alicloud:///REGION/i-… or alicloud:///ZONE/i-…"
_PROVIDER_ID = re.compile(
    r"(?:(?P<region>[a-z]+(?:-[a-z0-9]+)+)\.|alicloud:///(?P<place>[a-z]+(?:-[a-z0-9]+)+)/)(?P<id>i-[A-Za-z0-9]{1,64})"
)
_HYBRID = "ack-hybrid://"
"""Begins the provider IDs of machines outside Alibaba Cloud in a cluster of ACK."""
_EXCLUDED = ("service.alibabacloud.com/exclude-node", "service.beta.kubernetes.io/exclude-node")


def provider_id(region: str, zone: str, id: str, form: ProviderIdFormat) -> str:
    """The provider ID of a machine: `REGION.ID`, which Alibaba's autoscaler and drivers read, or the URI."""
    return f"{region}.{id}" if form == "region" else f"{PROVIDER_NAME}:///{zone}/{id}"


def machine_id(ref: InstanceRef, region: str) -> str | None:
    """The ID of the node's machine; None if it has no provider ID.

    Raises InvalidConfiguration for the provider ID of another cloud or region: that the machine is not here says
    nothing about it.
    """
    if not ref.provider_id:
        return None
    field = f"node {ref.node_name}: spec.providerID"
    found = _PROVIDER_ID.fullmatch(ref.provider_id)
    if found is None:
        raise InvalidConfiguration(field, f"{ref.provider_id!r} is not a provider ID of Alibaba Cloud", _ALLOWED)
    # A zone's name begins with its region's: cn-hangzhou-h, ap-southeast-1a.
    place = found["region"] or found["place"]
    if place != region and not (found["place"] and re.fullmatch(rf"{re.escape(region)}-?[a-z]\d?", place)):
        raise InvalidConfiguration(field, f"{ref.provider_id!r} is not in {region}", _ALLOWED)
    return found["id"]


def is_left_alone(node: Object) -> bool:
    """Whether the node is none of ours: outside the cloud, or excluded by a label, whatever its value."""
    if (node["spec"].get("providerID") or "").startswith(_HYBRID):
        return True
    return any(label in (node["metadata"].get("labels") or {}) for label in _EXCLUDED)
