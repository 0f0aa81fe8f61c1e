"""Descriptors of clouds that exist in a test alone."""

from __future__ import annotations

from collections.abc import Callable

from cloud_controller.cloud import Cloud
from cloud_controller.clouds import CloudDescriptor
from cloud_controller.load_balancers.catalogue import Catalogue


def descriptor_of(from_config: Callable[[str], Cloud], name: str = "fake") -> CloudDescriptor:
    """A cloud without annotations, classes or rights."""
    return CloudDescriptor(
        name=name,
        from_config=from_config,
        provider_id_scheme=name,
        catalogue=Catalogue(cloud=name, prefixes=(), entries=()),
        load_balancer_classes=frozenset(),
        rights=lambda _: (),
    )
