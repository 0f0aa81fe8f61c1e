"""Names: the cloud's own, those of the endpoints in its catalog, and those of Neutron."""

from __future__ import annotations

from typing import Literal

PROVIDER_NAME = "openstack"

Interface = Literal["public", "internal", "admin"]
"""Which of a service's endpoints in the catalog."""

ROUTER_INTERFACES = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""`device_owner` of a router's ports in the subnets that it joins: of a plain, a distributed and a redundant router."""
