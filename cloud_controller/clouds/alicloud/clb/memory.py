"""What CLB's API tells one by one, cached: server groups with their backends, and further certificates of listeners."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.alicloud.clb.memory_text import from_bytes, to_bytes
from cloud_controller.clouds.alicloud.clb.wire import Group, group_of, is_gone
from cloud_controller.clouds.common.cache import Cache, Entries
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls

LIFETIME = 600.0
"""Seconds after which an entry is read again, so that a change by hand is seen."""


class Memory:
    """Server groups by ID, of which load balancer each name is one, and certificates by listener (`lb-1/443`)."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.groups: Entries[Group | None] = Entries(cache, LIFETIME, spread=True)
        self.certificates: Entries[Mapping[str, tuple[str, str]]] = Entries(cache, LIFETIME, spread=True)
        """ID and certificate by domain."""
        self._names: dict[str, dict[str, str]] = {}

    def group_id(self, lb_id: str, name: str) -> str | None:
        """The ID of the load balancer's group with this name."""
        with self.cache.lock:
            return self._names.get(lb_id, {}).get(name)

    def name_groups(self, lb_id: str, ids: Mapping[str, str]) -> None:
        """Remember all groups of a load balancer, by name."""
        with self.cache.lock:
            self._names[lb_id] = dict(ids)

    def add_group(self, group: Group) -> None:
        """Remember a group that this process made."""
        with self.cache.lock:
            self._names.setdefault(group.load_balancer_id, {})[group.name] = group.id
            self.groups.put(group.id, group, anew=True)

    def forget_group(self, lb_id: str, name: str) -> None:
        """Drop a group that this process deleted."""
        with self.cache.lock:
            group_id = self._names.get(lb_id, {}).pop(name, None)
            if group_id is not None:
                self.groups.forget(group_id)

    def forget_all_of(self, lb_id: str) -> None:
        """Drop a load balancer's groups and certificates: it is deleted."""
        with self.cache.lock:
            self.groups.forget(*self._names.pop(lb_id, {}).values())
            self.certificates.forget(*(each for each in self.certificates.all() if each.startswith(f"{lb_id}/")))

    def dump(self, limit: int) -> bytes:
        """The cache as bytes; see `Remembering.dump`."""
        groups = {group_id: group for group_id, group in self.groups.all().items() if group is not None}
        return to_bytes(groups, self.certificates.all(), limit=limit)

    def restore(self, memory: bytes) -> None:
        """Load a `dump`. Raises ValueError, leaving the cache empty, if it is invalid."""
        groups, certificates = from_bytes(memory)
        for group_id, group in groups.items():
            self.groups.put(group_id, group, anew=True)
        for listener, each in certificates.items():
            self.certificates.put(listener, each, anew=True)

    @contextmanager
    def changing(self, id: str) -> Iterator[None]:
        """Around a change of a group or of a listener's certificates; see `Cache.changing`."""
        with self.cache.changing(id):
            yield

    def read_groups(
        self, ids: Collection[str], read: Callable[[str], Mapping[str, object]], concurrently: ConcurrentCalls
    ) -> dict[str, Group]:
        """These groups, those that are due read again; deleted ones are absent."""

        def read_many(due: list[str]) -> dict[str, Group | None]:
            return dict(zip(due, concurrently(partial(_read_one, each, read) for each in due), strict=True))

        found = self.groups.fetch_many(ids, read_many, missing=None)
        return {group_id: group for group_id, group in found.items() if group is not None}


def _read_one(id: str, read: Callable[[str], Mapping[str, object]]) -> Group | None:
    try:
        return group_of(read(id))
    except CloudError as error:
        if is_gone(error):
            return None
        raise
