"""The clouds that the components know: what packages offer under the entry-point group of this package's name.

That is `components.clouds`, in the library `pulumi_cloud_controller.clouds`. A cloud joins by an entry point that leads
to its descriptor (`interface.ComponentsCloud`).
"""

from __future__ import annotations

from cloud_controller.registry import Registry, UnknownName

from .. import inputs
from .interface import ComponentsCloud

_REGISTRY = Registry(__name__, ComponentsCloud)


def names() -> list[str]:
    """All of them, sorted; loads nothing."""
    return _REGISTRY.names()


def descriptors() -> list[ComponentsCloud]:
    """All of them, by name."""
    return _REGISTRY.all()


def descriptor(name: str) -> ComponentsCloud:
    """Cloud `name`. Raises WrongInput (property `cloud`) for a cloud without components."""
    try:
        return _REGISTRY.get(name)
    except UnknownName as error:
        raise inputs.WrongInput("cloud", f"{name!r} has no components; allowed: {', '.join(error.known)}") from None
