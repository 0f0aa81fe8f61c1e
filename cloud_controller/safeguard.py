"""Keeps a process from deleting what no live object asked it to delete.

Two things stand between a plan and such a deletion: the cluster's identity (`binding`), compared at the start and again
before it, and *held* actions, which wait until an administrator confirms their digest with `cloud-controller confirm`.
Confirmations are annotations of the Lease: they survive a restart and need no right that the controllers lack.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

from cloud_controller.binding import UNBOUND, Binding, ForeignCluster
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.events import CLUSTER, Events
from cloud_controller.fence import Fence
from cloud_controller.kube import LEASES, NAMESPACES, ApiError, ConflictError, KubeApi, NotFoundError, Object
from cloud_controller.metrics import Metrics
from cloud_controller.plan import DIGEST_LENGTH, Action, ActionKind, Plan, object_of

ANNOTATION = "confirmed.cloud-controller/"
"""The prefix of the Lease's annotations that release held actions: the digest follows, and the value is the time of the
confirmation."""
HELD = "ActionHeld"
"""The reason of the event about a held action."""

_IDENTITY = "kube-system"
_PERIOD = 2.0
"""Seconds between two looks at the Lease while something is held."""
_TRIES = 5
_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")
_SHOWN = 3

_log = logging.getLogger(__name__)


def cluster_uid(kube: KubeApi) -> str:
    """The Kubernetes cluster's identity: the UID of namespace kube-system. Raises `ApiError`."""
    return str(kube.get(NAMESPACES, _IDENTITY)["metadata"]["uid"])


def verify(kube: KubeApi, binding: Binding) -> None:
    """Raise ForeignCluster unless this is the binding's Kubernetes cluster, and `ApiError` if it does not answer."""
    if not binding.uid:
        return
    try:
        found = cluster_uid(kube)
    except NotFoundError:
        found = "(none: namespace kube-system does not exist)"
    if found != binding.uid:
        change = f"the UID was {binding.uid} and is {found}"
        raise ForeignCluster(f"the API server now belongs to another Kubernetes cluster: {change}")


def confirmed(kube: KubeApi, namespace: str, lease: str) -> frozenset[str]:
    """The digests that the Lease carries; none where there is no Lease. Raises `ApiError`."""
    try:
        annotations = kube.get(LEASES, lease, namespace)["metadata"].get("annotations") or {}
    except NotFoundError:
        return frozenset()
    return frozenset(each.removeprefix(ANNOTATION) for each in annotations if each.startswith(ANNOTATION))


def confirm(kube: KubeApi, namespace: str, lease: str, digests: Collection[str]) -> None:
    """Release the held actions of these digests, once. Raises `InvalidConfiguration` for what is no digest."""
    for digest in digests:
        if not _DIGEST.fullmatch(digest):
            allowed = f"{DIGEST_LENGTH} hexadecimal digits, as `cloud-controller plan` shows them"
            raise InvalidConfiguration("DIGEST", f"{digest!r} is not a digest", allowed)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    _annotate(kube, namespace, lease, lambda present: {**present, **{ANNOTATION + each: now for each in digests}})


def _annotate(
    kube: KubeApi, namespace: str, lease: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> None:
    """Change the Lease's annotations; make the Lease if there is none, as with `--leader-elect=false`.

    Its holder renews it every few seconds, so the write may have to be repeated.
    """
    for left in reversed(range(_TRIES)):
        try:
            found = kube.get(LEASES, lease, namespace)
        except NotFoundError:
            metadata = {"name": lease, "namespace": namespace}
            found = kube.create(LEASES, {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata})
        present = found["metadata"].get("annotations") or {}
        wanted = dict(change(present))
        if wanted == present:
            return
        try:
            kube.replace(LEASES, {**found, "metadata": {**found["metadata"], "annotations": wanted}})
            return
        except ConflictError:
            if not left:
                raise


class Safeguard:
    """One for each process, shared by its controllers; safe to use from any thread.

    It calls `foreign(why)` when the API server turns out to be another cluster's: the process must end.
    """

    def __init__(
        self,
        kube: KubeApi,
        namespace: str,
        lease: str,
        metrics: Metrics | None = None,
        *,
        binding: Binding = UNBOUND,
        foreign: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.binding = binding
        self._kube = kube
        self._namespace = namespace
        self._lease = lease
        self._metrics = metrics
        self._foreign = foreign
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[str, dict[str, Action]] = {}
        self._confirmed: frozenset[str] = frozenset()
        self._read_at = float("-inf")

    def fence_writes(self, fence: Fence) -> None:
        """See `Cloud.fence_writes`."""
        self._kube = self._kube.fenced(fence)

    # -------------------------------------------------------------------------------------------------- identity

    def verify(self) -> None:
        """Raise ForeignCluster unless the API server still is this cluster's, and `ApiError` if it does not answer."""
        try:
            verify(self._kube, self.binding)
        except ForeignCluster as error:
            self._foreign(str(error))
            raise

    # ------------------------------------------------------------------------------------------------ held actions

    def admit(
        self, controller: str, plan: Plan, events: Events | None = None, *, about: Collection[str] | None = None
    ) -> Plan:
        """The plan with what has been confirmed released; what stays held is reported.

        `about` are the objects that the plan is for (`service/NAMESPACE/NAME`); None: all of the controller's. Where
        something is newly held or to be deleted, raises ForeignCluster if the API server is another cluster's, and
        `ApiError` if it does not answer.
        """
        plan = self.released(plan)
        self.report(controller, plan.held, events, about=about)
        if any(action.kind is ActionKind.DELETE for action in plan.changes):
            self.verify()
        return plan

    def released(self, plan: Plan) -> Plan:
        """The plan in which what has been confirmed is held no longer.

        While the confirmations cannot be read, everything that is held stays so, and hinders nothing else.
        """
        if not plan.held:
            return plan
        try:
            return plan.released(self._read())
        except ApiError as error:
            _log.warning("could not read confirmations error=%r", str(error))
            return plan

    def used(self, done: Iterable[Action]) -> None:
        """Take back the confirmations of these actions, which were carried out: each releases once."""
        digests = {action.confirmed for action in done} - {None}
        if not digests:
            return
        self._read_at = float("-inf")
        spent = {f"{ANNOTATION}{each}" for each in digests}
        try:
            _annotate(
                self._kube,
                self._namespace,
                self._lease,
                lambda present: {key: value for key, value in present.items() if key not in spent},
            )
        except ApiError as error:
            # Its digest names an object that is gone: nothing else can be released by it.
            _log.warning("could not remove confirmations digests=%s error=%r", ",".join(map(str, digests)), str(error))

    def held(self) -> tuple[Action, ...]:
        """What is held at present, as far as the controllers have planned."""
        with self._lock:
            return tuple(action for of in self._held.values() for action in of.values())

    def detail(self) -> str | None:
        """For /readyz: what waits for a confirmation, which blocks nothing else; None where nothing does."""
        held = self.held()
        if not held:
            return None
        more = f"; and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
        return f"{len(held)} held: {'; '.join(map(str, held[:_SHOWN]))}{more}"

    def watch(self, stop: threading.Event, wake: Callable[[str, frozenset[str]], None]) -> None:
        """Until `stop` is set, tell `wake` (controller, targets) of held actions that somebody has confirmed."""
        while not stop.wait(_PERIOD):
            if not self.held():
                continue
            try:
                digests = self._read(fresh=True)
            except ApiError as error:
                _log.warning("could not read confirmations error=%r", str(error))
                continue
            with self._lock:
                found = {
                    controller: frozenset(action.target for action in of.values() if action.held in digests)
                    for controller, of in self._held.items()
                }
            for controller, targets in found.items():
                if targets:
                    wake(controller, targets)

    def _read(self, *, fresh: bool = False) -> frozenset[str]:
        if fresh or self._clock() >= self._read_at + _PERIOD:
            self._confirmed = confirmed(self._kube, self._namespace, self._lease)
            self._read_at = self._clock()
        return self._confirmed

    def report(
        self,
        controller: str,
        held: Iterable[Action],
        events: Events | None = None,
        *,
        about: Collection[str] | None = None,
    ) -> None:
        """Report what is newly held, once; see `admit`."""
        now = {f"{action.held}{action.target}": action for action in held}
        with self._lock:
            before = self._held.get(controller, {})
        if now.keys() - before.keys():
            self.verify()  # First: where the API server is silent, it is still to be told of at the next try.
        with self._lock:
            before = self._held.get(controller, {})
            rest = {} if about is None else {k: a for k, a in before.items() if object_of(a.target) not in about}
            new = [action for key, action in now.items() if key not in before]
            self._held[controller] = rest | now
            if self._metrics is not None:
                self._metrics.held.labels(controller).set(len(self._held[controller]))
        for action in new:
            _log.warning("held controller=%s digest=%s action=%r", controller, action.held, str(action))
            if events is not None:
                message = (
                    f"Held: {action.summary} ({action.reason}). Release it: cloud-controller confirm {action.held}"
                )
                events.warning(_reference(action.target), HELD, message)


def _reference(target: str) -> Object:
    """The object that an event about the target names: for what is no object of Kubernetes, the cluster itself."""
    parts = target.split("/")
    if parts[0] == "service" and len(parts) >= 3:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": parts[1], "name": parts[2]}}
    if parts[0] == "node" and len(parts) >= 2:
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": parts[1]}}
    return CLUSTER
