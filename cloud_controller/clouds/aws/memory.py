"""The cache of network load balancers' details, which AWS's lists do not show.

Reading listeners, attributes and targets costs a call for each load balancer. They are read once, updated by this
process's own changes, and read again when a list shows another change, when a change failed, and once an hour.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cloud_controller.clouds.aws.names import LOAD_BALANCER_TAG, POOL_TAG
from cloud_controller.clouds.common.cache import LAG, Cache, Entries
from cloud_controller.load_balancers.model import Listener, Pool

LIFETIME = 3600.0
"""Seconds for which details that lists do not show stay valid."""

View = Mapping[str, Any]
"""A load balancer or target group from a list."""


@dataclass(frozen=True, slots=True)
class KnownListener:
    """A listener and its ARN."""

    arn: str
    listener: Listener


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A pool and its target group. `attached`: whether a list showed a listener for it; None: unknown."""

    arn: str
    pool: Pool
    attached: bool | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A load balancer: its attributes, its listeners by port, its target groups by pool.

    `made_with`: attributes of the model that lists may omit, with their values at creation.
    """

    arn: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[int, KnownListener] = field(default_factory=dict)
    groups: Mapping[str, KnownGroup] = field(default_factory=dict)
    made_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def with_listener(self, port: int, listener: KnownListener | None) -> Known:
        """A copy with this listener on the port, or (None) without."""
        rest = {each: known for each, known in self.listeners.items() if each != port}
        # The next list shows which groups the listener forwards to.
        groups = {name: replace(group, attached=None) for name, group in self.groups.items()}
        return replace(self, listeners=rest if listener is None else {**rest, port: listener}, groups=groups)

    def with_group(self, name: str, group: KnownGroup | None) -> Known:
        """A copy with this target group as pool `name`, or (None) without."""
        rest = {each: known for each, known in self.groups.items() if each != name}
        return replace(self, groups=rest if group is None else {**rest, name: group})


class Memory(Entries[Known]):
    """Load balancers by ID. Safe to share between threads.

    - `views`: load balancers in the last list, unless they changed since, by ID.
    - `made`: AWS's responses to recent creations, by ID: lists may lack these load balancers or their target groups.
    - `tags`: the tags of load balancers and target groups, others' included, by ARN.
    """

    def __init__(self, cache: Cache) -> None:
        super().__init__(cache, LIFETIME, spread=True)
        self.views: Entries[View] = Entries(cache)
        self.made: Entries[View] = Entries(cache, LAG)
        self.tags: Entries[Mapping[str, str]] = Entries(cache)
        self._past: dict[str, Known] = {}

    def forget(self, *ids: str) -> None:
        """Drop the load balancers: they are deleted or must be read again."""
        with self.cache.lock:
            self._past |= {each: known for each in ids if (known := self.get(each)) is not None}
            super().forget(*ids)
            self.views.forget(*ids)
            self.made.forget(*ids)

    def last(self, id: str) -> Known | None:
        """The last known value, possibly outdated."""
        with self.cache.lock:
            return self.get(id) or self._past.get(id)

    def groups(self, id: str) -> dict[str, str]:
        """The target groups of a load balancer: ARNs by pool."""
        return {
            tags[POOL_TAG]: arn
            for arn, tags in self.tags.all().items()
            if tags.get(LOAD_BALANCER_TAG) == id and POOL_TAG in tags
        }

    def named(self, id: str) -> list[str]:
        """The ARNs of load balancers with this ID; AWS allows only one."""
        return [arn for arn, tags in self.tags.all().items() if name_in(arn) and id_in(arn, tags) == id]

    def keep_only(self, ids: Collection[str], arns: Collection[str], since: int) -> None:
        """Drop what a complete list, begun at `since`, does not show, unless its load balancer has changed since."""
        with self.cache.lock:
            changed = partial(self.cache.has_changed, since=since)
            kept = {*ids, *filter(changed, (*self.all(), *self.views.all(), *self._past))}
            new, known = self.made.fresh(), self.tags.all().items()
            lists_lack = {arn: id_in(arn, tags) for arn, tags in known if arn not in arns}
            self.tags.forget(*(arn for arn, of in lists_lack.items() if of not in new and not changed(of)))
            self.forget(*({*self.all(), *self.views.all()} - kept))
            self._past = {each: past for each, past in self._past.items() if each in kept}

    def saved(self) -> tuple[dict[str, Known], dict[str, Mapping[str, str]]]:
        """All load balancers by ID, and all tags by ARN."""
        with self.cache.lock:
            return self.all(), self.tags.all()

    def restore(self, known: Mapping[str, Known], tags: Mapping[str, Mapping[str, str]]) -> None:
        """Add the content of a checkpoint."""
        with self.cache.lock:
            for arn, of_arn in tags.items():
                self.tags.put(arn, of_arn)
            for lb_id, each in known.items():
                self.read(lb_id, each, self.cache.moment())


def id_in(arn: str, tags: Mapping[str, str]) -> str:
    """The load balancer's ID: from its tag if a user chose its name, otherwise the name."""
    return tags.get(LOAD_BALANCER_TAG) or name_in(arn)


def name_in(arn: str) -> str:
    """The name in a load balancer's ARN (…:loadbalancer/net/NAME/0123456789abcdef); "" for other ARNs."""
    return arn.split("/")[2] if ":loadbalancer/" in arn else ""
