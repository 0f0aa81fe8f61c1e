"""What a state holds: resources, and operations of which nobody knows whether they happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from local.engine.stack.references import following
from local.engine.stack.resource import ResourceState


class Operation(StrEnum):
    """What was being done to a resource when the run ended."""

    CREATING = "creating"
    UPDATING = "updating"
    DELETING = "deleting"
    READING = "reading"
    IMPORTING = "importing"


@dataclass(frozen=True, slots=True)
class PendingOperation:
    """A side effect that was begun; `resource` is as it was meant to be."""

    operation: Operation
    resource: ResourceState


@dataclass(slots=True)
class Snapshot:
    """The resources, in an order in which each stands after what it needs, and the operations whose end is unknown."""

    resources: dict[tuple[str, str], ResourceState] = field(default_factory=dict)
    pending: dict[int, PendingOperation] = field(default_factory=dict)

    def put(self, resource: ResourceState, ends: int | None = None, doomed: ResourceState | None = None) -> None:
        """Add or change a resource, end the operation that made it so, and keep its `doomed` predecessor beside it."""
        # What is known keeps its place; `ordered` mends what stands before something that it needs.
        self.resources[resource.key] = resource
        if doomed is not None:
            self.resources[doomed.key] = doomed
        if ends is not None:
            self.pending.pop(ends, None)

    def remove(self, key: tuple[str, str], ends: int | None) -> None:
        """Forget a resource, and end the operation that removed it."""
        self.resources.pop(key, None)
        if ends is not None:
            self.pending.pop(ends, None)

    def rename(self, old: str, renamed: ResourceState) -> None:
        """Put a resource in the place of the one whose URN was `old`; whatever refers to it follows."""
        for key, resource in list(self.resources.items()):
            self.resources[key] = following(resource, old, renamed.urn)
        for number, pending in list(self.pending.items()):
            self.pending[number] = replace(pending, resource=following(pending.resource, old, renamed.urn))
        self.resources.pop((old, ""), None)
        self.resources[renamed.key] = renamed

    def all(self) -> list[ResourceState]:
        """A copy: other threads go on changing the snapshot."""
        return list(self.resources.values())

    def live(self) -> dict[str, ResourceState]:
        """The resources by URN, without those that only wait for their deletion."""
        return {r.urn: r for r in self.all() if not r.delete}

    def ordered(self) -> list[ResourceState]:
        """The resources, each after whatever it needs; otherwise in the order in which they came."""
        return in_order(self.all())


def in_order(resources: Iterable[ResourceState]) -> list[ResourceState]:
    """Sort so that each stands after what it needs; the order of the rest stays. Cycles are left as they come."""
    items = list(resources)
    by_urn: dict[str, list[ResourceState]] = {}
    for item in items:
        by_urn.setdefault(item.urn, []).append(item)
    done: dict[tuple[str, str], ResourceState] = {}
    visiting: set[tuple[str, str]] = set()
    for item in items:
        if item.key in visiting:
            continue
        # Not recursive: what needs what may be a longer chain than Python's stack is deep.
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
