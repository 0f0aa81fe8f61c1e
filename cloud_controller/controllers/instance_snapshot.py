"""Caches the cloud's machines for all controllers.

Many machines are read with one list, few with describe calls, as are machines that are known only by node name (a batch
of names costs no more than a page of a list). Concurrent callers share one request; describing a few machines does not
wait for a list in progress.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.binding import Evidence
from cloud_controller.cloud import (
    CloudError,
    Conflict,
    Instance,
    Instances,
    InstanceState,
    Selective,
    Unlisting,
    Untagged,
)
from cloud_controller.controllers import nodes as view
from cloud_controller.controllers.doubts import doubts
from cloud_controller.kube import Object, name, uid

NOT_ANCHORED = "no Node's provider ID is one of the cluster's machines: this may be another cluster's cloud config"
"""The reason for holding what `InstanceSnapshot.anchored` does not allow."""

_ANCHOR_AGE = 600.0
"""Maximum age in seconds of a list for `anchored`: a Node's machine never changes."""
_DOUBTS_AGE = 30.0
"""Maximum age in seconds of a list for `doubts`: half of what a node waits before it is deleted for its name alone, so
that its machine, which was made before the node, is in the list."""
_KEPT = 1800.0
"""Seconds after which an entry that was not refreshed is dropped."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """`instance` None: gone, or none has this name. `at`: when the cloud was queried."""

    instance: Instance | None
    at: float


def provider_ids(nodes: Iterable[Object]) -> set[str]:
    """Those that the nodes have."""
    return {provider_id for node in nodes if (provider_id := node["spec"].get("providerID"))}


class InstanceSnapshot:
    """Machines by node, at most `lifetime` seconds old by default. Thread-safe.

    Every method raises `CloudError` if a request fails; the cache stays as it is.
    """

    def __init__(
        self,
        instances: Instances,
        lifetime: float = 5.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        read: Callable[[], None] = lambda: None,
    ) -> None:
        """`read`: called after each successful read of the cloud."""
        self._instances = instances
        self._lifetime = lifetime
        self._clock = clock
        self._read = read
        self._listing = threading.Lock()
        self._asking = threading.Lock()
        self._by_provider_id: dict[str, _Answer] = {}
        # By the node's UID: a later node with the same name may have another machine.
        self._by_uid: dict[str, _Answer] = {}
        self._listed: frozenset[str] = frozenset()
        self._living: Mapping[str, Instance] = {}
        self._listed_provider_ids: frozenset[str] = frozenset()
        self._listed_at = -math.inf
        self._new_since_list = 0
        # Ids that a fresh list has shown not to belong to the cluster.
        self._strangers: frozenset[str] = frozenset()
        self._swept_at = clock()

    def describe(self, nodes: Iterable[Object], max_age: float | None = None) -> view.Described:
        """The machine of each node, at most `max_age` (default: `lifetime`) seconds old.

        Gone machines are cached for `lifetime` at most, and missing names not at all, because a machine with that name
        may come up at any time. Nodes that the cloud leaves alone are in neither result.
        """
        nodes = self._ours(nodes)
        since, gone_since = self._since(max_age), max(self._since(max_age), self._since(None))
        found, unknown = self._known(nodes, since, gone_since)
        if self._are_many(unknown):
            with self._listing:
                # Another thread may have listed meanwhile. The same applies to describing below.
                if self._are_many(self._known(nodes, since, gone_since)[1]):
                    self._list()
            found, unknown = self._known(nodes, since, gone_since)
        if not unknown:
            return found, {}
        with self._asking:
            found, unknown = self._known(nodes, since, gone_since)
            asked, errors = self._ask(unknown)
        return found | asked, errors

    def describe_surely(self, nodes: Iterable[Object], max_age: float | None = None) -> view.Described:
        """Like `describe`, but confirm each gone machine with a second, uncached describe call."""
        nodes = tuple(nodes)
        found, errors = self.describe(nodes, max_age)
        gone = [node for node in nodes if found.get(name(node), node) is None]
        confirmed, doubts = self.describe_afresh(gone)
        answered = {of: machine for of, machine in (found | confirmed).items() if of not in doubts}
        return answered, errors | doubts

    def describe_afresh(self, nodes: Iterable[Object]) -> view.Described:
        """The machine of each node from a new describe call, never from a cached list."""
        with self._asking:
            return self._ask(self._ours(nodes))

    def exclusive(self, described: view.Described, nodes: Iterable[Object]) -> view.Described:
        """`described`, with an error for each node whose machine belongs to an older one of `nodes` (all nodes).

        A kubelet can register any provider ID: a node must not get the machine of another node.
        """
        found, errors = described
        claims: dict[str, list[Object]] = {}
        for node in nodes:
            if machine := self._machine_id(node, found):
                claims.setdefault(machine, []).append(node)
        conflicts: dict[str, CloudError] = {}
        for machine, rivals in claims.items():
            oldest = min(rivals, key=view.age)
            for node in rivals:
                if node is not oldest and found.get(name(node)) is not None:
                    conflicts[name(node)] = Conflict(f"machine {machine} belongs to the older node {name(oldest)}")
        return {of: machine for of, machine in found.items() if of not in conflicts}, errors | conflicts

    def _machine_id(self, node: Object, found: Mapping[str, Instance | None]) -> str | None:
        """The id from the cloud if known, because a provider ID may have several spellings."""
        if instance := found.get(name(node)):
            return instance.id
        provider_id = node["spec"].get("providerID")
        answer = self._by_provider_id.get(provider_id) if provider_id else None
        return answer.instance.id if answer and answer.instance else provider_id

    def cluster_machines(self, max_age: float | None = None, among: Iterable[str] = ()) -> frozenset[str]:
        """The ids of all machines of the cluster, including terminated ones while the cloud lists them.

        If one of `among` is missing, the list may be too old: it is refreshed, once per missing id.
        """
        with self._listing:
            self._ensure_list(max_age, frozenset(among))
            return self._listed

    def anchored(self, nodes: Iterable[Object], max_age: float = _ANCHOR_AGE, *, after: float = -math.inf) -> bool:
        """Whether at least one of these nodes has a machine of the cluster, including terminated ones.

        IF NOT, NOTHING MAY BE DELETED: Nodes and cloud config are probably of different clusters, and every Node,
        route and Service would look obsolete. `after`: no answer may be older than this time of the clock.
        """
        nodes = [node for node in self._ours(nodes) if node["spec"].get("providerID")]
        if not nodes:
            return False
        ids = provider_ids(nodes)
        with self._listing:
            if self._listed_at < after:
                self._list()
            self._ensure_list(max_age, frozenset())
            if not ids & self._listed_provider_ids and self._listed_at < self._since(None):
                self._list()  # All machines may have been replaced since the last list.
            if ids & self._listed_provider_ids:
                return True
        # Nodes may spell a provider ID otherwise than the list. That the cloud describes a machine proves nothing: it
        # describes those of the account's other clusters, too.
        is_unlisted = self._instances.is_unlisted if isinstance(self._instances, Unlisting) else lambda _: False
        unlisted = {name(node) for node in nodes if is_unlisted(node)}
        asked = sorted(nodes, key=lambda node: name(node) not in unlisted)[: view.BATCH]
        found, _ = self.describe(asked, min(max_age, max(0.0, self._clock() - after)))
        return any(each and (each.id in self._listed or of in unlisted) for of, each in found.items())

    def identifies(self, nodes: Iterable[Object]) -> bool:
        """Whether one of these nodes names its machine."""
        return bool(provider_ids(self._ours(nodes)))

    def evidence(self, nodes: Iterable[Object]) -> Evidence:
        """Whose the cluster's machines are. They prove nothing while no node has a provider ID: they may still boot."""
        nodes = self._ours(nodes)
        if not self.identifies(nodes):
            return Evidence("machines")
        # A machine that has been replaced registers under its name, before it has a provider ID; if its predecessor had
        # the same name, that one's Node keeps its provider ID.
        joining = [node for node in nodes if not node["spec"].get("providerID")]
        alive = self.anchored(nodes) or self._are_called(nodes) or any(self.describe(joining)[0].values())
        return Evidence("machines", len(self._living), int(alive))

    def _are_called(self, nodes: Iterable[Object]) -> bool:
        """Whether a machine of the last list may have one of these Nodes, by its name."""
        names = {*map(name, nodes)}
        return any(machine.node_names & names for machine in self._living.values())

    def living(self, ids: Iterable[str]) -> frozenset[str]:
        """The machines among `ids` that are not terminated, by a list that is at most `lifetime` old."""
        with self._listing:
            self._ensure_list(None, frozenset())
            return frozenset(self._living.keys() & {*ids})

    def doubts(self, described: view.Described, nodes: Iterable[Object], among: Iterable[Object]) -> dict[str, str]:
        """Why a machine may be that of those of `nodes` that have no provider ID, and by `described` no machine.

        NEVER DELETE SUCH A NODE: no machine is called so, which proves nothing. `among`: all nodes.
        """
        found, _ = described
        among = tuple(among)
        nameless = [
            node for node in nodes if not node["spec"].get("providerID") and found.get(name(node), node) is None
        ]
        if not nameless:
            return {}
        try:
            with self._listing:
                self._ensure_list(_DOUBTS_AGE, frozenset())
                living = self._living
            # The list tells nothing of provider IDs that are spelled otherwise than the cloud's.
            self.describe(node for node in among if provider_ids([node]) - self._by_provider_id.keys())
        except CloudError as error:
            return dict.fromkeys(map(name, nameless), f"could not list the cluster's machines: {error}")
        oldest_last = sorted(among, key=view.age, reverse=True)
        claimed = {machine: node for node in oldest_last if (machine := self._machine_id(node, found))}
        return doubts(nameless, living.values(), claimed, untagged=isinstance(self._instances, Untagged))

    def _ours(self, nodes: Iterable[Object]) -> tuple[Object, ...]:
        if not isinstance(self._instances, Selective):
            return tuple(nodes)
        return tuple(node for node in nodes if not self._instances.leaves_alone(node))

    def _ensure_list(self, max_age: float | None, wanted: frozenset[str]) -> None:
        if self._listed_at < self._since(max_age) or wanted - self._listed - self._strangers:
            self._list()
            self._strangers = wanted - self._listed

    def _since(self, max_age: float | None) -> float:
        return self._clock() - (self._lifetime if max_age is None else max_age)

    def _are_many(self, nodes: Sequence[Object]) -> bool:
        """Whether one list is cheaper than describing these nodes and those that will probably follow.

        While a cluster starts, its nodes register by the dozen, but all its machines exist already.
        """
        identified = sum(1 for node in nodes if node["spec"].get("providerID"))
        many = max(identified, self._new_since_list + self._new_ones(nodes))
        return identified > 0 and many > view.BATCH and 2 * many >= len(self._by_provider_id)

    def _new_ones(self, nodes: Iterable[Object]) -> int:
        ids = (node["spec"].get("providerID") for node in nodes)
        return sum(1 for provider_id in ids if provider_id and provider_id not in self._by_provider_id)

    def _known(
        self, nodes: Sequence[Object], since: float, gone_since: float
    ) -> tuple[dict[str, Instance | None], list[Object]]:
        found: dict[str, Instance | None] = {}
        unknown: list[Object] = []
        for node in nodes:
            provider_id = node["spec"].get("providerID")
            answer = self._by_provider_id.get(provider_id) if provider_id else self._by_uid.get(uid(node))
            if answer is None or answer.at < (since if answer.instance is not None else gone_since):
                unknown.append(node)
            else:
                found[name(node)] = answer.instance
        return found, unknown

    def _ask(self, nodes: Sequence[Object]) -> view.Described:
        if not nodes:
            return {}, {}
        at = self._clock()
        if at > self._swept_at + _KEPT:
            self._sweep(at)
        self._new_since_list += self._new_ones(nodes)
        found, errors = view.describe(self._instances, nodes)
        if found:
            self._read()
        for node in nodes:
            if name(node) in found:
                self._remember(node, _Answer(found[name(node)], at))
        return found, errors

    def _remember(self, node: Object, answer: _Answer) -> None:
        if provider_id := node["spec"].get("providerID"):
            self._by_provider_id[provider_id] = answer
        elif answer.instance is not None:
            self._by_provider_id[answer.instance.provider_id] = answer
            self._by_uid[uid(node)] = answer

    def _list(self) -> None:
        at = self._clock()
        machines = self._instances.list()
        self._read()
        self._new_since_list = 0
        self._listed, self._listed_at = frozenset(machine.id for machine in machines), at
        self._living = {each.id: each for each in machines if each.state is not InstanceState.TERMINATED}
        # Machines missing from the list may exist, because lists lag: they are described when needed.
        answers = {
            machine.provider_id: _Answer(None if machine.state is InstanceState.TERMINATED else machine, at)
            for machine in machines
        }
        known = [*self._by_provider_id.items()]
        # Nodes may spell a provider ID otherwise than the cloud.
        by_id = {machine.id: machine.provider_id for machine in machines}
        answers |= {
            spelled: answers[by_id[answer.instance.id]]
            for spelled, answer in known
            if answer.instance is not None and answer.instance.id in by_id
        }
        self._listed_provider_ids = frozenset(answers)
        self._by_provider_id = answers | {of: answer for of, answer in known if answer.at > at}

    def _sweep(self, at: float) -> None:
        kept = at - _KEPT
        self._by_provider_id = {of: answer for of, answer in [*self._by_provider_id.items()] if answer.at > kept}
        self._by_uid = {of: answer for of, answer in self._by_uid.items() if answer.at > kept}
        self._swept_at = at
