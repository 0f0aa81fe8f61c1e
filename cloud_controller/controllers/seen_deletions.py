"""Records the objects whose deletion this process has seen.

An object that vanishes without a deletion timestamp was not deleted by a user: etcd has lost its data or was restored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from cloud_controller.kube import EventType, Object, uid

_REMEMBERED = 10_000


class SeenDeletions:
    """The UIDs (or other ids) of deleted objects; bounded, oldest dropped first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, None] = OrderedDict()

    def handle(self, _: EventType, old: Object | None, new: Object | None) -> None:
        """Informer handler."""
        for obj in (old, new):
            if obj is not None:
                self.note(obj)

    def note(self, obj: Object) -> None:
        """Record the object if it is being deleted."""
        if obj["metadata"].get("deletionTimestamp"):
            self.remember(uid(obj))

    def remember(self, identity: str) -> None:
        """Record that the object with this identity was deleted."""
        with self._lock:
            self._seen[identity] = None
            self._seen.move_to_end(identity)
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)

    def forget(self, identity: str) -> None:
        """The object with this identity exists again."""
        with self._lock:
            self._seen.pop(identity, None)

    def uids(self) -> frozenset[str]:
        """All recorded UIDs."""
        with self._lock:
            return frozenset(self._seen)

    def __contains__(self, identity: object) -> bool:
        return identity in self._seen
