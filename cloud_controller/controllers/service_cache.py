"""What the service controller knows of the load balancers in the cloud, by Service: read in batches, kept up to date.

A Service whose state is known and settled costs no call. Every change that the controller makes is followed by a read
of what came of it; the whole is read again from time to time, which finds what others changed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from cloud_controller.load_balancer import ObservedLoadBalancer
from cloud_controller.load_balancer_operations import LoadBalancers

Key = str
"""NAMESPACE/NAME of a Service, as informers have it."""


class LoadBalancerCache:
    """Observed load balancers by the Service that they belong to. Safe to use from any thread.

    That is the Service of their tag's UID; where nobody has named one of that UID, the Service that their tag names.
    """

    def __init__(self, load_balancers: LoadBalancers, cluster_id: str) -> None:
        self._load_balancers = load_balancers
        self._cluster_id = cluster_id
        self._lock = threading.Lock()
        self._by_key: dict[Key, tuple[ObservedLoadBalancer, ...]] = {}
        self._clock = 0
        self._written: dict[Key, int] = {}
        self._suspect: set[Key] = set()
        self._loaded = False

    @property
    def loaded(self) -> bool:
        """Whether the whole has been read once."""
        return self._loaded

    def keys(self) -> set[Key]:
        """The Services that have a load balancer."""
        with self._lock:
            return set(self._by_key)

    def get(self, key: Key) -> tuple[ObservedLoadBalancer, ...]:
        """The load balancers of this Service, and of others that had its name before."""
        with self._lock:
            return self._by_key.get(key, ())

    def unsettled(self) -> dict[str, Key]:
        """UID to key of the Services with a load balancer on which the cloud is at work."""
        with self._lock:
            return {
                owner.uid: key
                for key, found in self._by_key.items()
                for lb in found
                if not lb.settled and (owner := lb.owner) is not None
            }

    def suspect(self, key: Key) -> None:
        """What is known of this Service may be wrong: a change of it failed half-way."""
        with self._lock:
            self._clock += 1
            self._written[key] = self._clock
            self._suspect.add(key)

    def is_suspect(self, key: Key) -> bool:
        """Whether the Service must be read again before it is planned for."""
        with self._lock:
            return key in self._suspect

    def load(self, services: Mapping[str, Key]) -> None:
        """Read everything. What was read singly while this read ran is newer, and stays.

        `services` are the Services that exist, by UID.
        """
        with self._lock:
            began = self._clock
        found = self._grouped(self._load_balancers.read(), services)
        with self._lock:
            newer = {key for key, written in self._written.items() if written > began}
            kept = {key: lbs for key, lbs in self._by_key.items() if key in newer}
            self._by_key = {key: lbs for key, lbs in found.items() if key not in newer} | kept
            self._written = {key: written for key, written in self._written.items() if key in newer}
            self._suspect &= newer
            self._loaded = True

    def refresh(self, owners: Iterable[tuple[Key, str]]) -> None:
        """Read the load balancers of these Services (key and UID), in one batch."""
        by_uid = {uid: key for key, uid in owners}
        found = self._grouped(self._load_balancers.read(by_uid.keys()), by_uid)
        with self._lock:
            self._clock += 1
            for key in set(by_uid.values()):
                others = [lb for lb in self._by_key.get(key, ()) if lb.owner is None or lb.owner.uid not in by_uid]
                self._by_key[key] = (*others, *found.get(key, ()))
                if not self._by_key[key]:
                    del self._by_key[key]
                self._written[key] = self._clock
                self._suspect.discard(key)

    def _grouped(
        self, found: Collection[ObservedLoadBalancer], services: Mapping[str, Key]
    ) -> dict[Key, tuple[ObservedLoadBalancer, ...]]:
        grouped: dict[Key, tuple[ObservedLoadBalancer, ...]] = {}
        for lb in found:
            owner = lb.owner
            if owner is not None and owner.cluster_id == self._cluster_id:
                # The UID decides: the name is for people, who may have changed the tag, or taken it away. Without
                # it, nobody can be asked whether a Service that is not known here exists: it is left alone.
                key = services.get(owner.uid) or (f"{owner.namespace}/{owner.name}" if owner.name else None)
                if key is not None:
                    grouped[key] = (*grouped.get(key, ()), lb)
        return grouped
