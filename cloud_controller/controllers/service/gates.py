"""Opens the readiness gates of pods: sets their conditions once the pods are healthy in their load balancers.

The cloud is asked about health only while a pod waits that is otherwise ready, and less and less often. An open gate
stays open: a condition that turned False again would take a serving pod out of every Service.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.queue import Cause, WorkQueue
from cloud_controller.controllers.service.cache import LoadBalancerCache
from cloud_controller.controllers.service.endpoints import ServiceEndpoints
from cloud_controller.controllers.service.facts import facts_for
from cloud_controller.controllers.service.gate_plan import Verdict, judged, registration, view_of, with_waiting
from cloud_controller.controllers.service.rules import Rules, wants_load_balancer
from cloud_controller.controllers.service.timing import poll_interval
from cloud_controller.kube import (
    PODS,
    ConflictError,
    EventType,
    KubeApi,
    NotFoundError,
    Object,
    ObjectCache,
    PatchType,
    key,
)
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.operations import LoadBalancers
from cloud_controller.load_balancers.readiness_gates import (
    ReadinessGates,
    closed_gates,
    is_otherwise_ready,
    message_of,
    selects,
)

_ENDPOINTS_LAG = 60.0
"""Seconds for which a pod that became ready still counts as a waiting one: until its EndpointSlice says so, a reconcile
would remove it from its load balancer."""

_EXPLAINED_AFTER = 10.0
"""Seconds of waiting after which the pod's condition says what it waits for."""

_log = logging.getLogger(__name__)


class PodGates:
    """The gates of all pods, each Service's with a key of its own in the queue; `NAMESPACE/` is for pods without one.

    `pods`: the cache of the pods that have gates of this cloud and are not ready. `backends`: the nodes, None before
    they are known. `members_changed(key)`: called when other pods than before count as ready for a Service.
    """

    def __init__(
        self,
        kube: KubeApi,
        load_balancers: LoadBalancers,
        cache: LoadBalancerCache,
        services: ObjectCache,
        pods: ObjectCache,
        endpoints: ServiceEndpoints,
        rules: Rules,
        gates: ReadinessGates,
        *,
        backends: Callable[[], Backends | None],
        members_changed: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._load_balancers = load_balancers
        self._cache = cache
        self._endpoints = endpoints
        self._rules = rules
        self._gates = gates
        self._backends = backends
        self._members_changed = members_changed
        self._clock = clock
        self._lock = threading.Lock()
        self._services: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self._pods: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self._since: dict[str, float] = {}
        self._settling: dict[str, tuple[float, Object]] = {}
        self._passed: defaultdict[str, set[str]] = defaultdict(set)
        self._opened: defaultdict[str, set[str]] = defaultdict(set)
        self.queue: WorkQueue[str] = WorkQueue()
        services.add_handler(self._service_changed)
        pods.add_handler(self._pod_changed)

    def changed(self, key: str) -> None:
        """The load balancer of this Service may have changed."""
        self.queue.add(key, Cause.DEPENDENCY)

    def counted(self, service: Object, slices: tuple[Object, ...]) -> tuple[Object, ...]:
        """The Service's slices, in which pods that only wait for gates of ours are ready."""
        with self._lock:
            now = self._clock()
            self._settling = {uid: each for uid, each in self._settling.items() if each[0] > now}
            pods = [*self._pods.get(service["metadata"]["namespace"], {}).values()]
            settling = [pod for _, pod in self._settling.values()]
        ready = [pod for pod in pods if is_otherwise_ready(pod, self._gates)] + settling
        return with_waiting(slices, {_uid(pod) for pod in ready if selects(service, pod)})

    # ------------------------------------------------------------------------------------------------------- handlers

    def _service_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        service = new or old
        if service is None:
            return
        with self._lock:
            _put(self._services, service, new)
        self.queue.add(key(service), Cause.OBJECT)
        # Pods whose last Service has gone or changed have nothing left to wait for.
        self.queue.add(f"{service['metadata']['namespace']}/", Cause.OBJECT)

    def _pod_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        pod = new or old
        if pod is None:
            return
        uid, namespace = _uid(pod), pod["metadata"]["namespace"]
        waited = old is not None and is_otherwise_ready(old, self._gates)
        waits = new is not None and is_otherwise_ready(new, self._gates)
        with self._lock:
            _put(self._pods, pod, new)
            if waits:
                self._since.setdefault(uid, self._clock())
            else:
                self._since.pop(uid, None)
            if new is None:
                self._passed.pop(uid, None)
                self._opened.pop(uid, None)
                if waited:
                    self._settling[uid] = self._clock() + _ENDPOINTS_LAG, pod
            services = [each for each in self._services.get(namespace, {}).values() if selects(each, pod)]
        for service in services:
            if waits:
                self.queue.add(key(service), Cause.DEPENDENCY)
            if waits != waited and new is not None:
                self._members_changed(key(service))
        if waits:
            self.queue.add(f"{namespace}/", Cause.DEPENDENCY)

    # ----------------------------------------------------------------------------------------------------- one Service

    def handle(self, key: str) -> None:
        """Decide about the pods that wait for one Service, or about those of a namespace that wait for none.

        Raises CloudError and ApiError.
        """
        if key.endswith("/"):
            for pod, condition in self._waiting_for_none(key):
                self._open(pod, condition, Verdict(True, "NoLoadBalancer", "no load balancer has to reach this pod"))
            return
        waiting = self._waiting_for(key)
        if not waiting:
            return
        verdicts = self._verdicts(key, waiting)
        for pod, verdict in zip(waiting, verdicts, strict=True):
            if verdict.opens:
                with self._lock:
                    self._passed[_uid(pod)].add(key)
            self._conclude(pod, key, verdict)
        if not all(verdict.opens for verdict in verdicts):
            self.queue.add_after(key, poll_interval(min(map(self._waited, waiting))), Cause.DEPENDENCY)

    def _verdicts(self, key: str, waiting: Sequence[Object]) -> list[Verdict]:
        name, service, backends = key.partition("/")[2], self._service(key), self._backends()
        if service is None or backends is None:
            return [Verdict(False, "Starting", "the controller is starting")] * len(waiting)
        slices = self.counted(service, self._endpoints.get(key))
        backends = replace(backends, slices=slices)
        try:
            facts = facts_for([service], {key: slices}, self._load_balancers, self._rules)
            view = view_of(service, self._cache.get(key), backends, self._load_balancers.builder, facts, self._rules)
        except InvalidConfiguration as error:
            return [Verdict(False, "InvalidService", f"Service {name}: {error}")] * len(waiting)
        found = [registration(pod, view) for pod in waiting]
        asked = {target.load_balancer for each in found if not isinstance(each, Verdict) for target in each}
        health = {lb: self._load_balancers.health(lb) for lb in sorted(asked)}
        return [
            each if isinstance(each, Verdict) else judged(each, health, self._waited(pod), name)
            for pod, each in zip(waiting, found, strict=True)
        ]

    def _conclude(self, pod: Object, key: str, verdict: Verdict) -> None:
        """Open the pod's gates that wait for no other Service; if this one is not open yet, say why."""
        with self._lock:
            passed = {*self._passed.get(_uid(pod), ())}
        explained = self._waited(pod) >= _EXPLAINED_AFTER
        for condition in self._closed(pod):
            services = self._services_of(pod, condition)
            if key not in services:
                continue
            if services <= passed:
                self._open(pod, condition, verdict)
            elif not verdict.opens and explained and message_of(pod, condition) != verdict.message:
                # Required to be unchanged: a gate that is open must never be closed, which would end the pod's traffic.
                self._write(pod, condition, verdict, {"resourceVersion": pod["metadata"]["resourceVersion"]})

    def _open(self, pod: Object, condition: str, verdict: Verdict) -> None:
        if self._write(pod, condition, verdict, {}):
            _log.info("gate opened pod=%s condition=%s why=%r", key(pod), condition, verdict.message)
            with self._lock:
                self._opened[_uid(pod)].add(condition)

    def _write(self, pod: Object, condition: str, verdict: Verdict, required: dict[str, str]) -> bool:
        """Write the condition; False if the pod is gone or has changed. Raises ApiError."""
        metadata = pod["metadata"]
        written = {
            "type": condition,
            "status": "True" if verdict.opens else "False",
            "reason": verdict.reason,
            "message": verdict.message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        # Conditions are merged by type: those of others stay.
        patch = {"metadata": {"uid": metadata["uid"], **required}, "status": {"conditions": [written]}}
        try:
            self._kube.patch(
                PODS, metadata["name"], patch, metadata["namespace"], type=PatchType.STRATEGIC, subresource="status"
            )
        except (NotFoundError, ConflictError):
            return False
        return True

    # --------------------------------------------------------------------------------------------------------- indexes

    def _waiting_for(self, key: str) -> list[Object]:
        """The pods that only wait for gates of ours, among others for this Service."""
        with self._lock:
            service = self._services.get(_namespace(key), {}).get(key)
            pods = [*self._pods.get(_namespace(key), {}).values()]
            passed = {uid for uid, keys in self._passed.items() if key in keys}
        if service is None or not wants_load_balancer(service, self._rules, self._load_balancers.builder):
            return []
        return [
            pod
            for pod in pods
            if selects(service, pod)
            and is_otherwise_ready(pod, self._gates)
            and _uid(pod) not in passed
            and any(self._gates.waits_for(condition, service) for condition in self._closed(pod))
        ]

    def _waiting_for_none(self, key: str) -> list[tuple[Object, str]]:
        """The closed gates of pods that only wait for gates of ours, but for no Service."""
        with self._lock:
            pods = [*self._pods.get(_namespace(key), {}).values()]
        return [
            (pod, condition)
            for pod in pods
            if is_otherwise_ready(pod, self._gates)
            for condition in self._closed(pod)
            if not self._services_of(pod, condition)
        ]

    def _closed(self, pod: Object) -> list[str]:
        """The pod's gates of ours that are closed; the cache may not show yet that one has just been opened."""
        with self._lock:
            opened = self._opened.get(_uid(pod), set())
            return [each for each in closed_gates(pod, self._gates) if each not in opened]

    def _services_of(self, pod: Object, condition: str) -> set[str]:
        """The Services whose load balancers must reach the pod before this gate opens."""
        with self._lock:
            beside = [*self._services.get(pod["metadata"]["namespace"], {}).values()]
        return {
            key(service)
            for service in beside
            if selects(service, pod)
            and self._gates.waits_for(condition, service)
            and wants_load_balancer(service, self._rules, self._load_balancers.builder)
        }

    def _service(self, key: str) -> Object | None:
        with self._lock:
            return self._services.get(_namespace(key), {}).get(key)

    def _waited(self, pod: Object) -> float:
        """Seconds for which the pod has waited for its gates alone."""
        with self._lock:
            return self._clock() - self._since.get(_uid(pod), self._clock())


def _put(index: defaultdict[str, dict[str, Object]], obj: Object, new: Object | None) -> None:
    namespace = obj["metadata"]["namespace"]
    if new is not None:
        index[namespace][key(new)] = new
        return
    index[namespace].pop(key(obj), None)
    if not index[namespace]:
        del index[namespace]


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
