"""Opens the readiness gates of pods: sets their conditions once the pods are healthy in their load balancers.

The cloud is asked about health only while a pod waits that is otherwise ready, and less and less often. An open gate
stays open: a condition that turned False again would take a serving pod out of every Service.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from cloud_controller.cloud import CloudError, InvalidConfiguration, Throttled
from cloud_controller.controllers.queue import Cause, WorkQueue
from cloud_controller.controllers.service.cache import LoadBalancerCache
from cloud_controller.controllers.service.endpoints import ServiceEndpoints
from cloud_controller.controllers.service.facts import facts_for
from cloud_controller.controllers.service.gate_plan import Verdict, judged, registration, view_of, with_waiting
from cloud_controller.controllers.service.rules import Rules, wants_load_balancer
from cloud_controller.controllers.service.timing import poll_interval
from cloud_controller.controllers.service.waiting_pods import WaitingPods
from cloud_controller.events import Events
from cloud_controller.kube import (
    PODS,
    ConflictError,
    EventType,
    InvalidError,
    KubeApi,
    NotFoundError,
    Object,
    ObjectCache,
    PatchType,
    key,
)
from cloud_controller.load_balancers.backends import Backends
from cloud_controller.load_balancers.operations import LoadBalancers
from cloud_controller.load_balancers.readiness_gates import ReadinessGates, message_of

_EXPLAINED_AFTER = 10.0
"""Seconds of waiting after which the pod's condition says what it waits for."""

_log = logging.getLogger(__name__)


class PodGates:
    """The gates of all pods. `queue` has a key for each Service, and `NAMESPACE/` for pods that wait for none.

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
        events: Events,
        *,
        backends: Callable[[], Backends | None],
        members_changed: Callable[[str], None],
    ) -> None:
        self._kube = kube
        self._load_balancers = load_balancers
        self._cache = cache
        self._endpoints = endpoints
        self._rules = rules
        self._events = events
        self._backends = backends
        self._members_changed = members_changed
        self._waiting = WaitingPods(gates, lambda each: wants_load_balancer(each, rules, load_balancers.builder))
        self._polled: set[str] = set()
        """The Services whose load balancers are asked again and again."""
        self.queue: WorkQueue[str] = WorkQueue()
        services.add_handler(self._waiting.take_service)
        services.add_handler(self._service_changed)
        pods.add_handler(self._pod_changed)

    def changed(self, key: str) -> None:
        """The load balancer of this Service may have changed."""
        self.queue.add(key, Cause.DEPENDENCY)

    def counted(self, service: Object, slices: tuple[Object, ...]) -> tuple[Object, ...]:
        """The Service's slices, in which pods that only wait for gates of ours are ready."""
        return with_waiting(slices, self._waiting.counted(service))

    def _service_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        service = new or old
        if service is not None:
            self.queue.add(key(service), Cause.OBJECT)
            # Pods whose last Service has gone or changed have nothing left to wait for.
            self.queue.add(f"{service['metadata']['namespace']}/", Cause.OBJECT)

    def _pod_changed(self, _: EventType, old: Object | None, new: Object | None) -> None:
        change = self._waiting.take_pod(old, new)
        if new is not None and change.waits != change.waited:
            for service in change.services:
                self._members_changed(service)
        # What we write into our own conditions must not wake Services before the next poll.
        if new is not None and change.waits and change.is_news:
            for each in (*change.services, f"{new['metadata']['namespace']}/"):
                self.queue.add(each, Cause.DEPENDENCY)

    # ----------------------------------------------------------------------------------------------------- one Service

    def handle(self, key: str) -> None:
        """Decide about the pods that wait for one Service, or about those of a namespace that wait for none.

        Raises CloudError and ApiError.
        """
        if key.endswith("/"):
            for pod, condition in self._waiting.waiting_for_none(key.removesuffix("/")):
                verdict = Verdict(True, "NoLoadBalancer", "no load balancer has to reach this pod")
                self._open(pod, key, condition, verdict)
            return
        pods, service = self._waiting.waiting_for(key), self._waiting.service(key)
        # A pod that has passed may wait for another Service, or for a write that failed.
        asked = [pod for pod in pods if self._waiting.verdict(pod, key) is None]
        found: list[tuple[Object, Verdict]] = []
        if service is not None and asked:
            found = [*zip(asked, self._verdicts(key, service, asked), strict=True)]
            for pod, verdict in found:
                if verdict.opens:
                    self._waiting.passed(pod, service, verdict)
        waiting = [pod for pod in asked if self._waiting.verdict(pod, key) is None]
        if waiting:
            self._polled.add(key)
            age = min(map(self._waiting.waited, waiting))
            self.queue.add_after(key, poll_interval(age, len(self._polled)), Cause.DEPENDENCY)
        else:
            self._polled.discard(key)
        for pod in pods:
            self._conclude(pod, key)
        for pod, verdict in found:
            if not verdict.opens:
                self._explain(pod, key, verdict)

    def _verdicts(self, key: str, service: Object, pods: Sequence[Object]) -> list[Verdict]:
        name, backends = service["metadata"]["name"], self._backends()
        if backends is None:
            return [Verdict(False, "Starting", "the controller is starting")] * len(pods)
        slices = self.counted(service, self._endpoints.get(key))
        backends = replace(backends, slices=slices)
        try:
            facts = facts_for([service], {key: slices}, self._load_balancers, self._rules)
            view = view_of(service, self._cache.get(key), backends, self._load_balancers.builder, facts, self._rules)
        except InvalidConfiguration as error:
            return [Verdict(False, "InvalidService", f"Service {name}: {error}")] * len(pods)
        found = [registration(pod, view) for pod in pods]
        asked = {target.load_balancer for each in found if not isinstance(each, Verdict) for target in each}
        try:
            health = {lb: self._load_balancers.health(lb) for lb in sorted(asked)}
        except Throttled:
            raise  # Not an error of the Service: it only has to wait.
        except CloudError as error:
            self._events.warning(service, "ReadinessGatesFailed", f"Error reading the health of waiting pods: {error}")
            raise
        return [
            each if isinstance(each, Verdict) else judged(each, health, self._waiting.waited(pod), name)
            for pod, each in zip(pods, found, strict=True)
        ]

    def _conclude(self, pod: Object, key: str) -> None:
        """Open the pod's gates that wait for this Service, if it and all others have let the pod pass."""
        verdict = self._waiting.verdict(pod, key)
        if verdict is None:
            return
        for condition in self._waiting.closed(pod):
            services = self._waiting.services_of(pod, condition)
            if key in services and not self._waiting.not_passed(pod, services):
                self._open(pod, key, condition, verdict)

    def _explain(self, pod: Object, key: str, verdict: Verdict) -> None:
        """If this Service keeps gates of the pod closed for long, say why. Of several Services, only one does."""
        if self._waiting.waited(pod) < _EXPLAINED_AFTER:
            return
        for condition in self._waiting.closed(pod):
            left = self._waiting.not_passed(pod, self._waiting.services_of(pod, condition))
            if key == min(left, default=None) and message_of(pod, condition) != verdict.message:
                # Required to be unchanged: a gate that is open must never be closed, which would end the pod's traffic.
                with suppress(ConflictError):
                    self._write(pod, condition, verdict, {"resourceVersion": pod["metadata"]["resourceVersion"]})

    def _open(self, pod: Object, woken: str, condition: str, verdict: Verdict) -> None:
        """Open the gate; after a conflict of writes, handle the key `woken` again. Raises ApiError."""
        try:
            is_there = self._write(pod, condition, verdict, {})
        except ConflictError:
            self.queue.add_after(woken, poll_interval(self._waiting.waited(pod)), Cause.DEPENDENCY)
            return
        if is_there:
            _log.info("gate opened pod=%s condition=%s why=%r", key(pod), condition, verdict.message)
        self._waiting.opened(pod, condition)

    def _write(self, pod: Object, condition: str, verdict: Verdict, required: dict[str, str]) -> bool:
        """Write the condition; False if the pod is gone, of which the cache will tell. Raises ApiError."""
        metadata = pod["metadata"]
        written = {
            "type": condition,
            "status": "True" if verdict.opens else "False",
            "reason": verdict.reason,
            "message": verdict.message,
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        # Conditions are merged by type: those of others stay. The UID is immutable, so the API server refuses the patch
        # for another pod that has the name by now.
        patch = {"metadata": {"uid": metadata["uid"], **required}, "status": {"conditions": [written]}}
        try:
            self._kube.patch(
                PODS, metadata["name"], patch, metadata["namespace"], type=PatchType.STRATEGIC, subresource="status"
            )
        except NotFoundError:
            return False
        except InvalidError as error:
            if not error.names("metadata.uid"):
                raise
            return False
        return True
