"""The clouds that the rules know: what packages offer under the entry-point group `policy.clouds`."""

from __future__ import annotations

from cloud_controller.registry import Registry
from policy.clouds.interface import PolicyCloud

_REGISTRY = Registry(__name__, PolicyCloud)


def descriptors() -> list[PolicyCloud]:
    """Every cloud's, by name."""
    return _REGISTRY.all()
