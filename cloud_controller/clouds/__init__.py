"""The clouds that this controller knows: a registry that other packages can join without a fork.

A cloud is a factory `(config_text) -> Cloud`. Those of this project register themselves when `load` imports them; a
private cloud's team names its module in the entry-point group `cloud_controller.clouds`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeAlias

from cloud_controller.cloud_errors import InvalidConfiguration

if TYPE_CHECKING:
    # Programs and policies come by here for a catalogue alone.
    from cloud_controller.cloud import Cloud
    from cloud_controller.manifests import CloudParts

CloudFactory: TypeAlias = "Callable[[str], Cloud]"

ENTRY_POINT_GROUP = "cloud_controller.clouds"

_factories: dict[str, CloudFactory] = {}
_manifest_parts: dict[str, str] = {}


def register(name: str, *, manifest_parts: str = "") -> Callable[[CloudFactory], CloudFactory]:
    """Decorate the factory of cloud `name`; registering one name twice is a programming error (ValueError).

    `manifest_parts`: the module whose `PARTS` says what the CCM's manifests have on this cloud besides.
    """

    def add(factory: CloudFactory) -> CloudFactory:
        if name in _factories:
            raise ValueError(f"cloud {name!r} is registered twice")
        _factories[name] = factory
        _manifest_parts[name] = manifest_parts
        return factory

    return add


def names() -> list[str]:
    """The clouds that `load` can make, sorted."""
    return sorted({*_factories, *(point.name for point in entry_points(group=ENTRY_POINT_GROUP))})


def load(name: str, config: str) -> Cloud:
    """Make cloud `name` from the text of its cloud config. Raises `InvalidConfiguration` for an unknown name."""
    _import(name)
    return _factories[name](config)


def manifest_parts(name: str) -> CloudParts:
    """What the CCM's manifests have on cloud `name` besides. Raises `InvalidConfiguration` for an unknown name."""
    from cloud_controller.manifests import CloudParts

    _import(name)
    module = _manifest_parts[name]
    parts: CloudParts = import_module(module).PARTS if module else CloudParts()
    return parts


def _import(name: str) -> None:
    """Let the cloud register itself. Raises `InvalidConfiguration` for an unknown name."""
    if name not in _factories:
        for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
            import_module(point.value)
    if name not in _factories:
        nearest = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise InvalidConfiguration("cloud", f"{name!r} is not a known cloud; {hint}".rstrip("; "), ", ".join(names()))
