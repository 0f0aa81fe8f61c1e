"""The content of a state: resources, and operations with unknown outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from local.engine.stack.references import following
from local.engine.stack.resource import ResourceState


class Operation(StrEnum):
    """An operation on a resource that was running when the run ended."""

    CREATING = "creating"
    UPDATING = "updating"
    DELETING = "deleting"
    READING = "reading"
    IMPORTING = "importing"


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """A side effect that was started; `resource` is its intended result."""

    operation: Operation
    resource: ResourceState


@dataclass(slots=True)
class Snapshot:
    """The resources, each after what it depends on, and the operations with unknown outcome."""

    resources: dict[tuple[str, str], ResourceState] = field(default_factory=dict)
    pending: dict[int, PendingOperation] = field(default_factory=dict)

    def put(self, resource: ResourceState, ends: int | None = None, predecessor: ResourceState | None = None) -> None:
        """Add or change a resource, end its operation, and keep its `predecessor` beside it."""
        # A known resource keeps its place; `ordered` corrects one that precedes its dependency.
        self.resources[resource.key] = resource
        if predecessor is not None:
            self.resources[predecessor.key] = predecessor
        if ends is not None:
            self.pending.pop(ends, None)

    def remove(self, key: tuple[str, str], ends: int | None) -> None:
        """Forget a resource, and end the operation that removed it."""
        self.resources.pop(key, None)
        if ends is not None:
            self.pending.pop(ends, None)

    def rename(self, old: str, renamed: ResourceState) -> None:
        """Replace the resource that had the URN `old`; references to it follow."""
        for key, resource in list(self.resources.items()):
            self.resources[key] = following(resource, old, renamed.urn)
        for number, pending in list(self.pending.items()):
            self.pending[number] = replace(pending, resource=following(pending.resource, old, renamed.urn))
        self.resources.pop((old, ""), None)
        self.resources[renamed.key] = renamed

    def all(self) -> list[ResourceState]:
        """A copy: other threads continue to change the snapshot."""
        return list(self.resources.values())

    def live(self) -> dict[str, ResourceState]:
        """The live resources by URN, without those that only await deletion."""
        return {r.urn: r for r in self.all() if not r.delete}

    def ordered(self) -> list[ResourceState]:
        """The resources, each after what it depends on; otherwise in their original order."""
        return in_order(self.all())


def in_order(resources: Iterable[ResourceState]) -> list[ResourceState]:
    """Sort so that each follows what it depends on; otherwise the order stays. Cycles are left as they are."""
    items = list(resources)
    by_urn: dict[str, list[ResourceState]] = {}
    for item in items:
        by_urn.setdefault(item.urn, []).append(item)
    done: dict[tuple[str, str], ResourceState] = {}
    visiting: set[tuple[str, str]] = set()
    for item in items:
        if item.key in visiting:
            continue
        # Not recursive: a chain of dependencies may exceed Python's stack.
        path = [(item, iter(_needed(item, by_urn)))]
        visiting.add(item.key)
        while path:
            current, needed = path[-1]
            first = next((n for n in needed if n.key not in done and n.key not in visiting), None)
            if first is not None:
                visiting.add(first.key)
                path.append((first, iter(_needed(first, by_urn))))
            else:
                path.pop()
                done[current.key] = current
    return list(done.values())


def _needed(item: ResourceState, by_urn: dict[str, list[ResourceState]]) -> list[ResourceState]:
    return [needed for urn in sorted(item.requires()) for needed in by_urn.get(urn, ())]
