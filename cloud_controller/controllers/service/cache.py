"""What the service controller knows of the load balancers in the cloud: read in batches, kept up to date.

A Service whose state is known and settled costs no call. What a change came to is taken over from the change itself;
the whole is read again from time to time, which finds what others changed.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from cloud_controller.load_balancers.model import ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import LoadBalancers

Key = str
"""NAMESPACE/NAME of a Service, as informers have it."""


class LoadBalancerCache:
    """Observed load balancers, and the Services that each is, or has parts, of. Safe to use from any thread.

    That is the Service of a tag's UID; where nobody has named one of that UID, the Service that the tag names. What
    another controller made is found by its name (`LoadBalancerBuilder.foreign_name`).
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
        self._moved: set[Key] = set()
        self._loaded = False

    @property
    def loaded(self) -> bool:
        """Whether the whole has been read once."""
        return self._loaded

    def keys(self) -> set[Key]:
        """The Services that have a load balancer, or parts on one."""
        with self._lock:
            return set(self._ids)

    def get(self, key: Key) -> tuple[ObservedLoadBalancer, ...]:
        """The load balancers of this Service, and of others that had its name before; also those with parts of it."""
        with self._lock:
            return tuple(self._found[each] for each in self._ids.get(key, ()))

    def all(self) -> tuple[ObservedLoadBalancer, ...]:
        """Every load balancer that is known."""
        with self._lock:
            return tuple(self._found.values())

    def owners(self, key: Key) -> tuple[Owner, ...]:
        """This Service, and others that had its name before, as far as they have anything in the cloud."""
        with self._lock:
            found = (owner for each in self._ids.get(key, ()) for owner in self._found[each].owners)
            return tuple(dict.fromkeys(owner for owner in found if self._key_of(owner) == key))

    def unclaimed(self) -> list[ObservedLoadBalancer]:
        """Those that another controller made for a Service of this cluster that is not known here."""
        with self._lock:
            adoptable = [lb for lb in self._found.values() if lb.adoptable and lb.adoptable.refusal is None]
            return [lb for lb in adoptable if lb.id not in self._keys]

    def find(self, id: str) -> ObservedLoadBalancer | None:
        """The load balancer of this id, as far as it is known."""
        with self._lock:
            return self._found.get(id)

    def keys_of(self, id: str) -> set[Key]:
        """The Services that have this load balancer, or parts on it."""
        with self._lock:
            return set(self._keys.get(id, ()))

    def unsettled(self) -> dict[str, frozenset[Key]]:
        """The load balancers on which the cloud is at work, and the Services that each concerns."""
        with self._lock:
            return {each: frozenset(keys) for each, keys in self._keys.items() if not self._found[each].settled}

    def take_moved(self) -> set[Key]:
        """The Services for which a read, whoever's it was, saw the cloud get on with its work; told once."""
        with self._lock:
            moved, self._moved = self._moved, set()
            return moved

    def mark_dirty(self, key: Key) -> None:
        """What is known of this Service may be wrong: a change of it failed half-way."""
        with self._lock:
            self._clock += 1
            self._dirty[key] = self._clock

    def is_dirty(self, key: Key) -> bool:
        """Whether the Service must be read again before it is planned for."""
        with self._lock:
            return key in self._dirty

    def put(self, key: Key, uid: str, lb: ObservedLoadBalancer) -> None:
        """What a change made for this Service (key and UID) has made of the load balancer."""
        with self._lock:
            self._name(uid, key)
            self._clock += 1
            self._keep(lb)

    def load(self, services: Mapping[str, Key], named: Iterable[str] = ()) -> None:
        """Read everything. What was written or read singly while this read ran is newer, and stays.

        `services` are the Services that exist, by UID; `named` the load balancers that their annotations name.
        """
        with self._lock:
            began = self._clock
            # What was made a moment ago may not be in the cloud's list yet.
            ids = {*named, *self._keys}
        found = self._load_balancers.read(None, ids)
        with self._lock:
            self._names, self._foreign_names = {}, {}
            for uid, key in services.items():
                self._name(uid, key)
            self._take(found, ids | self._found.keys(), began)
            # Names are known better now.
            for lb in [*self._found.values()]:
                self._index(lb)
            self._written = {each: at for each, at in self._written.items() if at > began}
            self._dirty = {key: at for key, at in self._dirty.items() if at > began}
            self._loaded = True

    def refresh(self, owners: Iterable[tuple[Key, str]], ids: Collection[str] = ()) -> None:
        """Read the load balancers of these Services (key and UID), and those of these ids, in one batch."""
        pairs = [*owners]
        with self._lock:
            began = self._clock
            for key, uid in pairs:
                self._name(uid, key)
            known = {*ids, *(each for key, _ in pairs for each in self._ids.get(key, ()))}
        found = self._load_balancers.read({uid for _, uid in pairs}, known)
        with self._lock:
            self._take(found, known, began)
            for key, _ in pairs:
                if self._dirty.get(key, 0) <= began:
                    self._dirty.pop(key, None)

    def _name(self, uid: str, key: Key) -> None:
        self._names[uid] = key
        namespace, _, name = key.partition("/")
        foreign = self._load_balancers.foreign_name(Owner(self._cluster_id, uid, namespace, name))
        if foreign is not None:
            self._foreign_names[foreign] = key

    def _take(self, found: Iterable[ObservedLoadBalancer], asked: Collection[str], began: int) -> None:
        """Believe a read, except about what was written since it `began`."""
        self._clock += 1
        present = {lb.id: lb for lb in found}
        for each in dict.fromkeys([*present, *asked]):
            if self._written.get(each, 0) > began:
                continue
            before, lb = self._found.get(each), present.get(each)
            if before is not None and not before.settled and before != lb:
                self._moved |= self._keys.get(each, set())
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
        # The UID decides: the name is for people, who may have changed the tag, or taken it away. Without it, nobody
        # can be asked whether a Service that is not known here exists: it is left alone.
        return self._names.get(owner.uid) or (f"{owner.namespace}/{owner.name}" if owner.name else None)
