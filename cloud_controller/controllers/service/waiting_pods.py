"""Tracks the pods that wait for their readiness gates, and the Services that they wait for."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from cloud_controller.controllers.service.gate_plan import Verdict
from cloud_controller.controllers.service.rules import service_traits
from cloud_controller.kube import EventType, Object, key, uid
from cloud_controller.load_balancers.readiness_gates import (
    ReadinessGates,
    closed_gates,
    counts_as_ready,
    selects,
    state_for_others,
)

_ENDPOINTS_LAG = 60.0
"""Seconds for which a pod that became ready still counts as a waiting one: until its EndpointSlice says so, a reconcile
would remove it from its load balancer."""

_FLAP = 60.0
"""Seconds for which a pod may be unready between two waits and still counts as having waited since the first: a pod
that flaps is not asked about as often as a new one."""

_Objects = defaultdict[str, dict[str, Object]]
"""By namespace, then by key."""


class PodChange(NamedTuple):
    """What a change of a pod means: whether it waits for nothing but its gates, now and before; and for which Services
    that matters. `is_news`: more has changed than its gates of this cloud, which we write ourselves."""

    waits: bool
    waited: bool
    is_news: bool
    services: list[str]


class WaitingPods:
    """An index over the caches of Services, and of the pods with gates that are not ready. Thread-safe.

    `wanted(service)`: whether the Service should have a load balancer of ours. Pods WAIT while only their gates of this
    cloud keep them from being ready (`counts_as_ready`).
    """

    def __init__(
        self,
        gates: ReadinessGates,
        wanted: Callable[[Object], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gates = gates
        self._wanted = wanted
        self.clock = clock
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._lock = threading.Lock()
        self._services: _Objects = defaultdict(dict)
        self._pods: _Objects = defaultdict(dict)
        self._since: dict[str, float] = {}
        self._paused: dict[str, float] = {}
        """When pods in `_since` stopped waiting; they may go on."""
        self._settling: dict[str, tuple[float, Object]] = {}
        self._passed: defaultdict[str, dict[str, Verdict]] = defaultdict(dict)
        self._opened: defaultdict[str, set[str]] = defaultdict(set)

    # --------------------------------------------------------------------------------------------------------- changes

    def take_service(self, _: EventType, old: Object | None, new: Object | None) -> None:
        """A handler of Services."""
        with self._lock:
            _put(self._services, old, new)
            if old is not None and (new is None or service_traits(old) != service_traits(new)):
                # It may have another load balancer or other members now, in which no pod has been seen healthy.
                for services in self._passed.values():
                    services.pop(key(old), None)

    def take_pod(self, old: Object | None, new: Object | None) -> PodChange:
        """Take a change of a pod into account; `new` None: it is ready or gone."""
        if old is not None and new is not None and uid(old) != uid(new):
            self.take_pod(old, None)
            old = None
        pod = new or old or {}
        waited = old is not None and self._waits(old)
        waits = new is not None and self._waits(new)
        is_news = old is None or new is None or self._state(old) != self._state(new)
        with self._lock:
            now = self.clock()
            _put(self._pods, old, new)
            self._settling = {each: at for each, at in self._settling.items() if at[0] > now}
            if waits:
                paused = self._paused.pop(uid(pod), now)
                if now - paused > _FLAP:
                    self._since[uid(pod)] = now
                self._since.setdefault(uid(pod), now)
            elif uid(pod) in self._since:
                self._paused.setdefault(uid(pod), now)
                # It may be unhealthy when it comes back.
                self._passed.pop(uid(pod), None)
            if new is None:
                for of_pods in (self._since, self._paused, self._passed, self._opened):
                    of_pods.pop(uid(pod), None)
                if waited:
                    self._settling[uid(pod)] = now + _ENDPOINTS_LAG, pod
            elif self._settling.pop(uid(pod), None):
                waited = True  # Until now it counted as ready.
            beside = self._services.get(pod["metadata"]["namespace"], {})
            services = [name for name, service in beside.items() if selects(service, pod)]
            return PodChange(waits, waited, is_news, services)

    def passed(self, pod: Object, service: Object, verdict: Verdict) -> None:
        """As far as this Service is concerned, the pod's gates may open; without effect if either has changed."""
        with self._lock:
            present = self._services.get(service["metadata"]["namespace"], {}).get(key(service))
            unchanged = present is not None and service_traits(present) == service_traits(service)
            if unchanged and self._is_waiting(pod):
                self._passed[uid(pod)][key(service)] = verdict

    def opened(self, pod: Object, condition: str) -> None:
        """This gate has been opened, or its pod is gone; the cache may show it later."""
        with self._lock:
            if uid(pod) in self._since:
                self._opened[uid(pod)].add(condition)

    # --------------------------------------------------------------------------------------------------------- queries

    def service(self, service: str) -> Object | None:
        """The Service with this key."""
        with self._lock:
            return self._services.get(_namespace(service), {}).get(service)

    def waiting_for(self, service: str) -> list[Object]:
        """The pods that wait, among others for this Service."""
        found = self.service(service)
        if found is None or not self._wanted(found):
            return []
        return [
            pod
            for pod in self._waiting(_namespace(service))
            if selects(found, pod) and any(self._gates.waits_for(condition, found) for condition in self.closed(pod))
        ]

    def waiting_for_none(self, namespace: str) -> list[tuple[Object, str]]:
        """The closed gates in this namespace that wait for no Service, each with its pod.

        A gate that names a Service of another controller is that controller's to open.
        """
        waiting = ((pod, condition) for pod in self._waiting(namespace) for condition in self.closed(pod))
        return [
            (pod, condition)
            for pod, condition in waiting
            if not self.services_of(pod, condition) and not self._is_of_another(condition, namespace)
        ]

    def counted(self, service: Object) -> set[str]:
        """The pods (UIDs) of this Service that count as ready, although their endpoints are not."""
        with self._lock:
            self._settling = {each: at for each, at in self._settling.items() if at[0] > self.clock()}
            settling = [pod for _, pod in self._settling.values()]
        pods = [*self._waiting(service["metadata"]["namespace"]), *settling]
        return {uid(pod) for pod in pods if selects(service, pod)}

    def closed(self, pod: Object) -> list[str]:
        """The condition types of the pod's gates of this cloud that are closed."""
        with self._lock:
            opened = self._opened.get(uid(pod), set())
            return [each for each in closed_gates(pod, self._gates) if each not in opened]

    def services_of(self, pod: Object, condition: str) -> set[str]:
        """The Services whose load balancers must reach the pod before this gate opens."""
        with self._lock:
            beside = {**self._services.get(pod["metadata"]["namespace"], {})}
        return {
            name
            for name, service in beside.items()
            if selects(service, pod) and self._gates.waits_for(condition, service) and self._wanted(service)
        }

    def verdict(self, pod: Object, service: str) -> Verdict | None:
        """The verdict with which this Service let the pod pass, if it did."""
        with self._lock:
            return self._passed.get(uid(pod), {}).get(service)

    def not_passed(self, pod: Object, services: set[str]) -> set[str]:
        """Those of these Services that have not let the pod pass."""
        with self._lock:
            return services - self._passed.get(uid(pod), {}).keys()

    def waited(self, pod: Object) -> float:
        """Seconds for which the pod has waited."""
        with self._lock:
            return self.clock() - self._since.get(uid(pod), self.clock())

    def _is_of_another(self, condition: str, namespace: str) -> bool:
        named = self._gates.service_named(condition)
        service = None if named is None else self.service(f"{namespace}/{named}")
        return (
            service is not None
            and service["spec"].get("type") == "LoadBalancer"
            and not service["metadata"].get("deletionTimestamp")
            and not self._wanted(service)
        )

    def _waiting(self, namespace: str) -> list[Object]:
        with self._lock:
            pods = [*self._pods.get(namespace, {}).values()]
        return [pod for pod in pods if self._waits(pod)]

    def _waits(self, pod: Object) -> bool:
        return counts_as_ready(pod, self._gates, self.now())

    def _state(self, pod: Object) -> tuple[object, ...]:
        return state_for_others(pod, self._gates)

    def _is_waiting(self, pod: Object) -> bool:
        return uid(pod) in self._since and uid(pod) not in self._paused


def _put(index: _Objects, old: Object | None, new: Object | None) -> None:
    if new is not None:
        index[new["metadata"]["namespace"]][key(new)] = new
    elif old is not None:
        namespace = old["metadata"]["namespace"]
        index[namespace].pop(key(old), None)
        if not index[namespace]:
            del index[namespace]


def _namespace(key: str) -> str:
    return key.partition("/")[0]
