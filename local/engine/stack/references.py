"""Updates a resource's references when what they refer to is renamed or gone. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from local.engine.stack.resource import ResourceState


def following(resource: ResourceState, old: str, new: str) -> ResourceState:
    """The resource with each reference to the URN `old` changed to `new`; the same object if it has none."""
    changes: dict[str, object] = {}
    if resource.parent == old:
        changes["parent"] = new
    if resource.provider.rpartition("::")[0] == old:
        changes["provider"] = f"{new}::{resource.provider.rpartition('::')[2]}"
    if resource.deleted_with == old:
        changes["deleted_with"] = new
    if old in resource.dependencies:
        changes["dependencies"] = _exchanged(resource.dependencies, old, new)
    if old in resource.replace_with:
        changes["replace_with"] = _exchanged(resource.replace_with, old, new)
    if any(old in needed for needed in resource.property_dependencies.values()):
        changes["property_dependencies"] = {
            key: _exchanged(needed, old, new) for key, needed in resource.property_dependencies.items()
        }
    return replace(resource, **changes) if changes else resource  # type: ignore[arg-type]


def remaining(resource: ResourceState, there: Collection[str]) -> ResourceState:
    """The resource without references to URNs outside `there`, as after a refresh; the same object if it has none.

    It keeps its provider, which is forgotten only when nothing refers to it.
    """
    if all(urn in there for urn in resource.requires()):
        return resource

    def kept(urns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(urn for urn in urns if urn in there)

    return replace(
        resource,
        parent=resource.parent if resource.parent in there else "",
        dependencies=kept(resource.dependencies),
        property_dependencies={key: kept(needed) for key, needed in resource.property_dependencies.items()},
        deleted_with=resource.deleted_with if resource.deleted_with in there else "",
        replace_with=kept(resource.replace_with),
    )


def _exchanged(found: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(sorted(new if urn == old else urn for urn in found))
