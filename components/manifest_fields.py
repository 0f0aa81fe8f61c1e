"""What Pulumi's Kubernetes resources take, from an object as in its YAML."""

from __future__ import annotations

import re
from typing import Any

from cloud_controller.manifests import Manifest


def arguments_of(manifest: Manifest) -> dict[str, Any]:
    """The resource's arguments: `role_ref` for `roleRef`; what its class says already is left out."""
    return {_argument(field): each for field, each in manifest.items() if field not in ("apiVersion", "kind")}


def _argument(field: str) -> str:
    return re.sub("([A-Z])", r"_\1", field).lower()
