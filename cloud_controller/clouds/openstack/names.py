"""The cloud's own name."""

from __future__ import annotations

PROVIDER_NAME = "openstack"
