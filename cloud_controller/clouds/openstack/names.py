"""The cloud's own name, and those of the endpoints in its catalog."""

from __future__ import annotations

from typing import Literal

PROVIDER_NAME = "openstack"

Interface = Literal["public", "internal", "admin"]
"""Which of a service's endpoints in the catalog."""
