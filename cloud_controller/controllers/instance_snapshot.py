"""What the cloud said lately of the machines behind nodes, kept once for all controllers.

Many machines are asked for by one list, few by a call of their own, and so is a machine that only the node's name tells
(a batch of names costs no more than a page of a list). Who asks while another does waits for that answer; who asks for
few does not wait for a list.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.cloud import CloudError, Conflict, Instance, Instances, InstanceState
from cloud_controller.controllers import nodes as view
from cloud_controller.kube import Object, name, uid

NOT_ANCHORED = "no Node's provider ID is one of the cluster's machines: this may be another cluster's cloud config"
"""Why nothing is deleted where `InstanceSnapshot.anchored` is False."""

_ANCHOR_AGE = 600.0
"""Seconds for which a list shows that Nodes are the cluster's machines: which machine a Node has never changes."""
_KEPT = 1800.0
"""Seconds after which an answer that nothing has renewed is forgotten."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """`instance` None: gone, or none of this name. `at`: when the cloud was asked."""

    instance: Instance | None
    at: float


class InstanceSnapshot:
    """Machines by node, as the cloud told them at most `lifetime` seconds ago; safe to share between threads.

    Every method raises `CloudError` where the cloud does not answer; what is known stays.
    """

    def __init__(
        self, instances: Instances, lifetime: float = 5.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._instances = instances
        self._lifetime = lifetime
        self._clock = clock
        self._listing = threading.Lock()
        self._asking = threading.Lock()
        self._by_provider_id: dict[str, _Answer] = {}
        # By the UID of the node: another node of that name may have another machine.
        self._by_uid: dict[str, _Answer] = {}
        self._listed: frozenset[str] = frozenset()
        self._living: frozenset[str] = frozenset()
        self._listed_provider_ids: frozenset[str] = frozenset()
        self._listed_at = -math.inf
        self._new_since_list = 0
        # What a list that was made for them has shown to be none of the cluster's.
        self._strangers: frozenset[str] = frozenset()
        self._swept_at = clock()

    def describe(self, nodes: Iterable[Object], max_age: float | None = None) -> view.Described:
        """The machine of each node, from answers at most `max_age` (default: `lifetime`) seconds old.

        That a machine is gone is believed for `lifetime` at most, that none has a name not even that long: it may have
        come up meanwhile.
        """
        nodes = tuple(nodes)
        since, gone_since = self._since(max_age), max(self._since(max_age), self._since(None))
        found, unknown = self._known(nodes, since, gone_since)
        if self._are_many(unknown):
            with self._listing:
                # Another may have asked meanwhile; that goes for the few below too.
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
        """As `describe`, but a machine is gone only if the cloud says so once more, asked for it by itself."""
        nodes = tuple(nodes)
        found, errors = self.describe(nodes, max_age)
        gone = [node for node in nodes if found.get(name(node), node) is None]
        confirmed, doubts = self.describe_afresh(gone)
        answered = {of: machine for of, machine in (found | confirmed).items() if of not in doubts}
        return answered, errors | doubts

    def describe_afresh(self, nodes: Iterable[Object]) -> view.Described:
        """The machine of each node, asked for by itself now and answered from no list."""
        with self._asking:
            return self._ask(tuple(nodes))

    def exclusive(self, described: view.Described, nodes: Iterable[Object]) -> view.Described:
        """These answers, with an error for each node whose machine an older one of `nodes` (all there are) has.

        Any node can be registered with any provider ID: what is another node's machine must not be taken for its own.
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
                    conflicts[name(node)] = Conflict(
                        f"machine {machine} belongs to node {name(oldest)}, which is older"
                    )
        return {of: machine for of, machine in found.items() if of not in conflicts}, errors | conflicts

    def _machine_id(self, node: Object, found: Mapping[str, Instance | None]) -> str | None:
        """As the cloud knows it where it has said so: a provider ID may be written in several ways."""
        if instance := found.get(name(node)):
            return instance.id
        provider_id = node["spec"].get("providerID")
        answer = self._by_provider_id.get(provider_id) if provider_id else None
        return answer.instance.id if answer and answer.instance else provider_id

    def cluster_machines(self, max_age: float | None = None, among: Iterable[str] = ()) -> frozenset[str]:
        """The ids of all machines of the cluster, those too that are terminated as long as the cloud lists them.

        Where one of `among` is missing, the list may be older than it: a new one is asked for, once for each.
        """
        with self._listing:
            self._ensure_list(max_age, frozenset(among))
            return self._listed

    def anchored(self, nodes: Iterable[Object], max_age: float = _ANCHOR_AGE) -> bool:
        """Whether at least one of these nodes has a machine of the cluster, terminated ones counted.

        Without one, Nodes and cloud config are most likely of two clusters, and every Node and route looks obsolete.
        """
        with self._listing:
            self._ensure_list(max_age, frozenset())
            ids = {node["spec"].get("providerID") for node in nodes}
            if not ids & self._listed_provider_ids and self._listed_at < self._since(None):
                self._list()  # All machines may have been replaced since the list was made.
            return bool(ids & self._listed_provider_ids)

    def living(self, ids: Iterable[str]) -> frozenset[str]:
        """Those of these machines of the cluster that are not terminated, by a list that is at most `lifetime` old."""
        with self._listing:
            self._ensure_list(None, frozenset())
            return self._living.intersection(ids)

    def _ensure_list(self, max_age: float | None, wanted: frozenset[str]) -> None:
        if self._listed_at < self._since(max_age) or wanted - self._listed - self._strangers:
            self._list()
            self._strangers = wanted - self._listed

    def _since(self, max_age: float | None) -> float:
        return self._clock() - (self._lifetime if max_age is None else max_age)

    def _are_many(self, nodes: Sequence[Object]) -> bool:
        """Whether a list costs less than asking for these by themselves, or would have, and for what comes after them.

        While a cluster comes up, its nodes come by the dozen and its machines are all there.
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
        self._new_since_list = 0
        self._listed, self._listed_at = frozenset(machine.id for machine in machines), at
        self._living = frozenset(machine.id for machine in machines if machine.state is not InstanceState.TERMINATED)
        self._listed_provider_ids = frozenset(machine.provider_id for machine in machines)
        # What the list lacks may still be there (lists lag): it is asked for by itself when it is wanted.
        answers = {
            machine.provider_id: _Answer(None if machine.state is InstanceState.TERMINATED else machine, at)
            for machine in machines
        }
        newer = {of: answer for of, answer in [*self._by_provider_id.items()] if answer.at > at}
        self._by_provider_id = answers | newer

    def _sweep(self, at: float) -> None:
        kept = at - _KEPT
        self._by_provider_id = {of: answer for of, answer in [*self._by_provider_id.items()] if answer.at > kept}
        self._by_uid = {of: answer for of, answer in self._by_uid.items() if answer.at > kept}
        self._swept_at = at
