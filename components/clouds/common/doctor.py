"""What clouds share about the role of `cloud-controller doctor`."""

from __future__ import annotations

from cloud_controller import manifests

ROLE_OF_DOCTOR = f"{manifests.NAME.removesuffix('-manager')}-doctor"
"""How its role's name ends: no longer than the CCM's, whose length limits the cluster's name."""
