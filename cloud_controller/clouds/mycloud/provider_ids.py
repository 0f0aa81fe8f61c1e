"""Maps nodes to their machines by provider ID: `mycloud://REGION/ZONE/ID`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.mycloud.names import PROVIDER_NAME

# Not longer than an ID can be: requests with a hundred IDs have a limit.
_PROVIDER_ID = re.compile(r"mycloud://[^/]+/[^/]+/(?P<id>i-[0-9a-f]{1,32})")


def provider_id(machine: Mapping[str, Any]) -> str:
    """The provider ID of a machine."""
    return f"{PROVIDER_NAME}://{machine['region']}/{machine['zone']}/{machine['id']}"


def machine_id(provider_id: str) -> str | None:
    """The id of the machine, or None for a provider ID that is not mycloud's."""
    match = _PROVIDER_ID.fullmatch(provider_id)
    return match["id"] if match else None


def machine_in(field: str, provider_id: str) -> str:
    """The id of the machine. Raises InvalidConfiguration with the field for a provider ID that is not mycloud's."""
    machine = machine_id(provider_id)
    if machine is None:
        raise InvalidConfiguration(field, f"{provider_id!r} is not a mycloud provider ID", "mycloud://REGION/ZONE/ID")
    return machine
