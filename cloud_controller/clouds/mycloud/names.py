"""The names by which Kubernetes knows mycloud and its volumes."""

from __future__ import annotations

PROVIDER_NAME = "mycloud"
"""The scheme of provider IDs."""
PROVISIONER = "mycloud.io/volume"
DRIVER = "mycloud.io"
