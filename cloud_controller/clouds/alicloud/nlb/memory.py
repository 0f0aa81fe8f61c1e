"""What is known of each NLB between a read and the changes that follow it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from cloud_controller.clouds.alicloud.nlb.memory_text import from_bytes, to_bytes
from cloud_controller.clouds.alicloud.nlb.wire import Server, View, tags_of
from cloud_controller.clouds.common.cache import LAG, Cache, Entries
from cloud_controller.load_balancers.model import Listener, Pool

LIFETIME = 600.0
"""Seconds after which servers and certificates, which the API returns part by part, are read again."""

_ADDRESS_STAYS = 5.0
"""Seconds for which an address is taken to be on the same network interface, to ask once for all ports of a Service:
the network plugin soon gives it to the next pod, elsewhere."""


@dataclass(frozen=True, slots=True)
class KnownListener:
    """A listener and its ID."""

    id: str
    listener: Listener


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A server group, its ID and its servers as the API names them, by member key."""

    id: str
    pool: Pool
    servers: Mapping[tuple[str, int], Server] = field(default_factory=dict)

    def with_servers(self, servers: Mapping[tuple[str, int], Server]) -> KnownGroup:
        """The group with exactly these servers, by member key."""
        members = tuple(sorted(each.member for each in servers.values()))
        return replace(self, pool=replace(self.pool, members=members), servers=servers)


@dataclass(frozen=True, slots=True)
class Known:
    """A load balancer as last read, or as changed since."""

    view: View
    listeners: Mapping[tuple[str, int], KnownListener] = field(default_factory=dict)
    groups: Mapping[str, KnownGroup] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The load balancer's ID."""
        return str(self.view["LoadBalancerId"])

    @property
    def tags(self) -> dict[str, str]:
        """The load balancer's tags."""
        return tags_of(self.view)

    def with_listener(self, key: tuple[str, int], listener: KnownListener | None) -> Known:
        """With this listener on the port, or with none."""
        rest = {each: of for each, of in self.listeners.items() if each != key}
        return replace(self, listeners=rest if listener is None else {**rest, key: listener})

    def with_group(self, pool: str, group: KnownGroup | None) -> Known:
        """With this server group for the pool, or with none."""
        rest = {each: of for each, of in self.groups.items() if each != pool}
        return replace(self, groups=rest if group is None else {**rest, pool: group})


class Memory:
    """The entries of all load balancers of one cluster. Safe to share between threads."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.known: Entries[Known] = Entries(cache)
        self.servers: Entries[tuple[Server, ...]] = Entries(cache, LIFETIME, spread=True)
        """The servers of each group, by its ID."""
        self.certificates: Entries[tuple[str, ...]] = Entries(cache, LIFETIME, spread=True)
        """The additional certificates of each TCPSSL listener, by its ID."""
        self.interfaces: Entries[str] = Entries(cache, _ADDRESS_STAYS)
        """The network interface of each pod, by its address; "" if it has none."""
        self.made: Entries[str] = Entries(cache, LAG)
        """Load balancers that this process created, with the UID of their Service: no list may show them yet."""
        self.made_groups: Entries[View] = Entries(cache, LAG)
        self.made_listeners: Entries[View] = Entries(cache, LAG)

    def shown(self, *ids: str) -> None:
        """Lists show these, or this process has changed what it made of them."""
        self.made_groups.forget(*ids)
        self.made_listeners.forget(*ids)

    def not_made(self, job: str) -> None:
        """Forget what this job failed to make."""
        with self.cache.lock:
            for kind in (self.made_groups, self.made_listeners):
                kind.forget(*(each for each, view in kind.all().items() if job in view["JobId"]))

    def dump(self, limit: int) -> bytes:
        """What the API returns part by part, as bytes; see `Remembering.dump`."""
        return to_bytes(self.servers.all(), self.certificates.all(), limit=limit)

    def restore(self, memory: bytes) -> None:
        """Load a `dump`. Raises ValueError, leaving the cache empty, if it is invalid."""
        servers, certificates = from_bytes(memory)
        for group, each in servers.items():
            self.servers.put(group, each, anew=True)
        for listener, of_listener in certificates.items():
            self.certificates.put(listener, of_listener, anew=True)

    def keep_only(self, load_balancers: Collection[str], groups: Collection[str]) -> None:
        """Forget what is no longer there."""
        with self.cache.lock:
            self.known.forget(*(self.known.all().keys() - {*load_balancers}))
            self.servers.forget(*(self.servers.all().keys() - {*groups}))
            listeners = {each.id for known in self.known.all().values() for each in known.listeners.values()}
            self.certificates.forget(*(self.certificates.all().keys() - listeners))
