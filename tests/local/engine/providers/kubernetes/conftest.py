"""The API server of the Kubernetes provider's tests."""

from tests.local.plugins.kubernetes.conftest import control_plane

__all__ = ["control_plane"]
