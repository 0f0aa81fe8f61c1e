"""Caches the cloud's load balancers for the service controller: read in batches and updated with every change.

A Service whose load balancer is known and settled costs no call. The controller's own changes are applied to the cache
directly; periodic full reads find changes made by others.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Collection, Iterable, Mapping

from cloud_controller.cloud_errors import CloudError, Throttled, Unavailable
from cloud_controller.joined_requests import JoinedRequests
from cloud_controller.load_balancers.model import ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import LoadBalancers

Key = str
"""NAMESPACE/NAME of a Service, as in informers."""

_GATHER = 0.1
"""Seconds for which a read waits for other Services' workers, so that many deleted at once are read at once."""

_log = logging.getLogger(__name__)


def read_named(load_balancers: LoadBalancers, ids: Collection[str]) -> tuple[list[ObservedLoadBalancer], set[str]]:
    """The load balancers with these IDs, and those IDs that the cloud refuses to show: one of another project, for
    instance, concerns only the Services that name it. Raises CloudError if the cloud throttles or does not answer."""
    if not ids:
        return [], set()
    try:
        return [*load_balancers.read((), ids)], set()
    except (Throttled, Unavailable):
        raise
    except CloudError as error:
        if len(ids) == 1:
            _log.warning("left out load_balancer=%s error=%r", *ids, str(error))
            return [], {*ids}
    found: list[ObservedLoadBalancer] = []
    refused: set[str] = set()
    for each in sorted(ids):
        shown, hidden = read_named(load_balancers, {each})
        found += shown
        refused |= hidden
    return found, refused


class LoadBalancerCache:
    """Observed load balancers, indexed by the Services that own them or parts of them. Thread-safe.

    The owner is the Service with the UID in the tags or, if that UID is unknown, the Service that the tags name. Load
    balancers of other controllers are matched by name (`LoadBalancerBuilder.foreign_name`).
    """

    def __init__(self, load_balancers: LoadBalancers, cluster_id: str) -> None:
        self._load_balancers = load_balancers
        self._cluster_id = cluster_id
        self._lock = threading.Lock()
        self._found: dict[str, ObservedLoadBalancer] = {}
        self._ids: dict[Key, dict[str, None]] = {}
        self._keys: dict[str, set[Key]] = {}
        self._names: dict[str, Key] = {}
        self._foreign_names: dict[str, Key] = {}
        self._clock = 0
        self._written: dict[str, int] = {}
        self._dirty: dict[Key, int] = {}
        self._progressed: set[Key] = set()
        self._loaded = False
        self.asked_at = -math.inf
        """When the last read began (`time.monotonic`)."""
        self.workers = 1
        """How many threads may `refresh` at once."""
        self._refreshes = JoinedRequests(self._read, callers=lambda: self.workers, gather=_GATHER)

    @property
    def loaded(self) -> bool:
        """Whether a full read has completed."""
        return self._loaded

    def keys(self) -> set[Key]:
        """The Services that have a load balancer, or parts on one."""
        with self._lock:
            return set(self._ids)

    def get(self, key: Key) -> tuple[ObservedLoadBalancer, ...]:
        """The load balancers of this Service, and of earlier Services of this name, including shared ones."""
        with self._lock:
            return tuple(self._found[each] for each in self._ids.get(key, ()))

    def all(self) -> tuple[ObservedLoadBalancer, ...]:
        """All cached load balancers."""
        with self._lock:
            return tuple(self._found.values())

    def owners(self, key: Key) -> tuple[Owner, ...]:
        """This Service, and earlier Services of this name, that own anything in the cloud."""
        with self._lock:
            found = (owner for each in self._ids.get(key, ()) for owner in self._found[each].owners)
            return tuple(dict.fromkeys(owner for owner in found if self._key_of(owner) == key))

    def unclaimed(self) -> list[ObservedLoadBalancer]:
        """The adoptable load balancers whose Service is unknown."""
        with self._lock:
            adoptable = [lb for lb in self._found.values() if lb.adoptable and lb.adoptable.refusal is None]
            return [lb for lb in adoptable if lb.id not in self._keys]

    def find(self, id: str) -> ObservedLoadBalancer | None:
        """The load balancer with this id, if cached."""
        with self._lock:
            return self._found.get(id)

    def keys_of(self, id: str) -> set[Key]:
        """The Services that own this load balancer or parts of it."""
        with self._lock:
            return set(self._keys.get(id, ()))

    def unsettled(self) -> dict[str, frozenset[Key]]:
        """The load balancers that the cloud is still working on, each with its Services."""
        with self._lock:
            return {each: frozenset(keys) for each, keys in self._keys.items() if not self._found[each].settled}

    def take_progressed(self) -> set[Key]:
        """The Services for which any read has seen progress of the cloud's work; each is returned once."""
        with self._lock:
            moved, self._progressed = self._progressed, set()
            return moved

    def mark_dirty(self, key: Key) -> None:
        """The cached state of this Service may be wrong, for example after a failed change."""
        with self._lock:
            self._clock += 1
            self._dirty[key] = self._clock

    def is_dirty(self, key: Key) -> bool:
        """Whether the Service must be read again before planning."""
        with self._lock:
            return key in self._dirty

    def put(self, key: Key, uid: str, lb: ObservedLoadBalancer) -> None:
        """Store a load balancer after a change made for this Service (key and UID)."""
        with self._lock:
            self._name(uid, key)
            self._clock += 1
            self._keep(lb)

    def drop(self, id: str) -> None:
        """Remove a load balancer that is gone."""
        with self._lock:
            self._clock += 1
            self._drop(id)

    def load(self, services: Mapping[str, Key], named: Iterable[str] = ()) -> None:
        """Read everything; newer entries, written or refreshed during this read, stay.

        `services`: the keys of the existing Services by UID. `named`: the load balancers that annotations name.
        """
        with self._lock:
            began = self._clock
            # The cloud's list may not show recently created load balancers yet.
            ids = {*named, *self._keys}
        refused: set[str] = set()
        self.asked_at = time.monotonic()
        try:
            found = [*self._load_balancers.read(None, ids)]
        except (Throttled, Unavailable):
            raise
        except CloudError:
            if not ids:
                raise
            found = [*self._load_balancers.read(None, ())]
            shown, refused = read_named(self._load_balancers, ids - {lb.id for lb in found})
            found += shown
        with self._lock:
            self._names, self._foreign_names = {}, {}
            for uid, key in services.items():
                self._name(uid, key)
            self._take(found, (ids | self._found.keys()) - refused, began)
            # Re-index, because names may have changed.
            for lb in [*self._found.values()]:
                self._index(lb)
            self._written = {each: at for each, at in self._written.items() if at > began}
            unseen = {key for each in refused for key in self._keys.get(each, ())}
            self._dirty = {key: at for key, at in self._dirty.items() if at > began or key in unseen}
            self._loaded = True

    def refresh(self, owners: Iterable[tuple[Key, str]], ids: Collection[str] = ()) -> None:
        """Read the load balancers of these Services (key and UID) and those with these ids, in one batch with what
        other workers ask for at the same time. Raises CloudError."""
        self._refreshes([*owners, *ids])

    def _read(self, asked: Collection[tuple[Key, str] | str]) -> None:
        pairs = [each for each in asked if not isinstance(each, str)]
        ids = [each for each in asked if isinstance(each, str)]
        with self._lock:
            began = self._clock
            for key, uid in pairs:
                self._name(uid, key)
            known = {*ids, *(each for key, _ in pairs for each in self._ids.get(key, ()))}
        self.asked_at = time.monotonic()
        found = self._load_balancers.read({uid for _, uid in pairs}, known)
        with self._lock:
            self._take(found, known, began)
            for key, _ in pairs:
                if self._dirty.get(key, 0) <= began:
                    self._dirty.pop(key, None)

    def _name(self, uid: str, key: Key) -> None:
        self._names[uid] = key
        namespace, _, name = key.partition("/")
        foreign = self._load_balancers.builder.foreign_name(Owner(self._cluster_id, uid, namespace, name))
        if foreign is not None:
            self._foreign_names[foreign] = key

    def _take(self, found: Iterable[ObservedLoadBalancer], asked: Collection[str], began: int) -> None:
        """Store the result of a read, except for entries written since it `began`."""
        self._clock += 1
        present = {lb.id: lb for lb in found}
        for each in dict.fromkeys([*present, *asked]):
            if self._written.get(each, 0) > began:
                continue
            before, lb = self._found.get(each), present.get(each)
            if before is not None and not before.settled and before != lb:
                self._progressed |= self._keys.get(each, set())
            if lb is not None:
                self._keep(lb)
            else:
                self._drop(each)

    def _keep(self, lb: ObservedLoadBalancer) -> None:
        self._found[lb.id] = lb
        self._written[lb.id] = self._clock
        self._index(lb)

    def _drop(self, id: str) -> None:
        self._found.pop(id, None)
        self._written[id] = self._clock
        self._unindex(id)

    def _index(self, lb: ObservedLoadBalancer) -> None:
        self._unindex(lb.id)
        keys = [self._key_of(owner) for owner in lb.owners]
        if lb.adoptable is not None:
            keys.append(self._foreign_names.get(lb.adoptable.name))
        for key in keys:
            if key is not None:
                self._ids.setdefault(key, {})[lb.id] = None
                self._keys.setdefault(lb.id, set()).add(key)

    def _unindex(self, id: str) -> None:
        for key in self._keys.pop(id, ()):
            del self._ids[key][id]
            if not self._ids[key]:
                del self._ids[key]

    def _key_of(self, owner: Owner) -> Key | None:
        if owner.cluster_id != self._cluster_id:
            return None
        # The UID identifies the Service; the name tag is only informative and may be changed or removed by anyone. If
        # the UID is unknown and the name is missing, nobody can tell whether the Service exists: leave it alone.
        return self._names.get(owner.uid) or (f"{owner.namespace}/{owner.name}" if owner.name else None)
