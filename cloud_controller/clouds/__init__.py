"""The known clouds: descriptors, found by entry points.

Each cloud's package names its descriptor in the entry-point group `cloud_controller.clouds`, so no list here names a
cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.descriptor import CloudDescriptor
from cloud_controller.registry import InvalidEntryPoint, Registry, UnknownName

if TYPE_CHECKING:
    from cloud_controller.cloud import Cloud

__all__ = ["CloudDescriptor", "descriptor", "descriptors", "load", "names"]

_REGISTRY = Registry(__name__, CloudDescriptor)


def names() -> list[str]:
    """The known clouds, sorted."""
    return _REGISTRY.names()


def descriptor(name: str) -> CloudDescriptor:
    """The descriptor of cloud `name`. Raises `InvalidConfiguration` for an unknown or a broken cloud package."""
    try:
        return _REGISTRY.get(name)
    except UnknownName as error:
        why = f"{name!r} is not a known cloud" + (f"; {error.hint}" if error.hint else "")
        raise InvalidConfiguration("cloud", why, ", ".join(error.known)) from None
    except InvalidEntryPoint as error:
        raise InvalidConfiguration("cloud", str(error)) from error


def descriptors() -> list[CloudDescriptor]:
    """All descriptors, sorted by name."""
    return _REGISTRY.all()


def load(name: str, config: str) -> Cloud:
    """Create cloud `name` from the text of its cloud config. Raises `InvalidConfiguration`."""
    return descriptor(name).from_config(config)
