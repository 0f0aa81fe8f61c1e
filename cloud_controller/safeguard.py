"""Prevents deletions that no live object asked for.

Two safeguards: the cluster's identity (`binding`), checked at startup and again before such a deletion, and *held*
actions, which wait until an administrator confirms their digest with `cloud-controller confirm`. Annotations of the
Lease say what is held and what is confirmed: they survive restarts and need no additional permissions.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

from cloud_controller import retries
from cloud_controller.binding import UNBOUND, Binding
from cloud_controller.cloud import ForeignCluster, InvalidConfiguration
from cloud_controller.events import CLUSTER, Events
from cloud_controller.fence import Fence, WriteRefused
from cloud_controller.kube import LEASES, NAMESPACES, ApiError, KubeApi, NotFoundError, Object
from cloud_controller.metrics import Metrics
from cloud_controller.plan import DIGEST_LENGTH, Action, ActionKind, Plan, object_of

ANNOTATION = "confirmed.cloud-controller/"
"""The prefix of the Lease annotations that release held actions, before the digest; the value is the time."""
HELD_ANNOTATION = "held.cloud-controller/"
"""The prefix of the Lease annotations that tell `confirm` what is held, before the digest; the value is the controller
and the action."""
HELD = "ActionHeld"
"""The reason of the event about a held action."""

_IDENTITY = "kube-system"
_PERIOD = 2.0
"""Seconds between reads of the Lease while actions are held."""
_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")
_SHOWN = 3
_LISTED = 10
"""The most held digests in a refusal."""
_RECORDED = 500
"""The most held digests on the Lease, whose annotations may have 256 KiB: the others follow as these are released."""
_WORDS = 120
"""The longest description of one."""

_log = logging.getLogger(__name__)


def cluster_uid(kube: KubeApi) -> str:
    """The cluster's identity: the UID of namespace kube-system. Raises `ApiError`."""
    return str(kube.get(NAMESPACES, _IDENTITY)["metadata"]["uid"])


def verify(kube: KubeApi, binding: Binding) -> None:
    """Raise ForeignCluster if the API server belongs to another cluster than the binding; may raise `ApiError`."""
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
    """The confirmed digests on the Lease; none if there is no Lease. Raises `ApiError`."""
    return frozenset(_digests(_annotations(kube, namespace, lease), ANNOTATION))


def confirm(kube: KubeApi, namespace: str, lease: str, digests: Collection[str]) -> None:
    """Release the held actions of these digests once.

    Raises `InvalidConfiguration`, and confirms none, if one is not a digest or no controller holds it.
    """
    for digest in digests:
        if not _DIGEST.fullmatch(digest):
            allowed = f"{DIGEST_LENGTH} hexadecimal digits, as `cloud-controller plan` shows them"
            raise InvalidConfiguration("DIGEST", f"{digest!r} is not a digest", allowed)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def released(present: Mapping[str, str]) -> Mapping[str, str]:
        held, before = _digests(present, HELD_ANNOTATION), _digests(present, ANNOTATION)
        if unknown := [each for each in digests if each not in held and each not in before]:
            known = [f"{each} ({what})" for each, what in sorted(held.items())]
            more = [f"and {len(known) - _LISTED} more"] if len(known) > _LISTED else []
            raise InvalidConfiguration(
                "DIGEST",
                f"no controller that leads by Lease {namespace}/{lease} holds {', '.join(unknown)}; nothing was "
                "confirmed. A daemon records there within seconds what it holds, `apply` and an update by Pulumi at "
                "once, and `plan` does not",
                "; ".join([*known[:_LISTED], *more]) or "none, because nothing is held",
            )
        return {**present, **{ANNOTATION + each: now for each in digests}}

    _annotate(kube, namespace, lease, released)


def _annotations(kube: KubeApi, namespace: str, lease: str) -> Mapping[str, str]:
    try:
        return kube.get(LEASES, lease, namespace)["metadata"].get("annotations") or {}
    except NotFoundError:
        return {}


def _digests(annotations: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in annotations.items() if key.startswith(prefix)}


def _recording(
    present: Mapping[str, str], held: Mapping[str, Iterable[Action]], controllers: Collection[str]
) -> dict[str, str]:
    """The annotations with what these controllers hold, and nothing else that they held."""
    of_others = {
        key: value
        for key, value in present.items()
        if not key.startswith(HELD_ANNOTATION) or value.partition(" ")[0] not in controllers
    }
    now = {
        f"{HELD_ANNOTATION}{action.held}": f"{controller} {action.target}: {action.summary}"[:_WORDS]
        for controller, actions in held.items()
        for action in actions
        # The others are their author's to release.
        if action.held and not action.acknowledgement
    }
    return of_others | dict(sorted(now.items())[:_RECORDED])


def _annotate(
    kube: KubeApi, namespace: str, lease: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> None:
    """Change the Lease's annotations; create it if it does not exist and needs some, as with `--leader-elect=false`.

    Retries conflicts: the holder renews the Lease every few seconds.
    """

    def annotated(_: int) -> None:
        try:
            found = kube.get(LEASES, lease, namespace)
        except NotFoundError:
            if annotations := dict(change({})):
                metadata = {"name": lease, "namespace": namespace, "annotations": annotations}
                kube.create(LEASES, {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata})
            return
        present = found["metadata"].get("annotations") or {}
        wanted = dict(change(present))
        if wanted != present:
            kube.replace(LEASES, {**found, "metadata": {**found["metadata"], "annotations": wanted}})

    retries.change(annotated)


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
        """Raise ForeignCluster if the API server now belongs to another cluster; may raise `ApiError`."""
        try:
            verify(self._kube, self.binding)
        except ForeignCluster as error:
            self._foreign(str(error))
            raise

    # ------------------------------------------------------------------------------------------------ held actions

    def admit(
        self, controller: str, plan: Plan, events: Events | None = None, *, about: Collection[str] | None = None
    ) -> Plan:
        """Release the plan's confirmed actions, report the held ones, and return the plan that may be applied.

        `about`: the objects that the plan covers (`service/NAMESPACE/NAME`); None: all of the controller's. If actions
        are newly held or delete something, the cluster's identity is verified first: see `verify` for the errors.
        """
        plan = self.released(plan)
        self.report(controller, plan.held, events, about=about)
        if any(action.kind is ActionKind.DELETE for action in plan.changes):
            self.verify()
        return plan

    def released(self, plan: Plan) -> Plan:
        """The plan with confirmed actions released. If confirmations cannot be read, held actions stay held."""
        if not plan.held:
            return plan
        try:
            return plan.released(self._read())
        except ApiError as error:
            _log.warning("could not read confirmations error=%r", str(error))
            return plan

    def used(self, plan: Plan, done: Collection[Action]) -> None:
        """Remove the confirmations of the plan's actions that are all done: each confirmation is valid once."""
        left = (action for action in plan.changes if action not in done)
        digests = {action.confirmed for action in done} - {action.confirmed for action in left} - {None}
        if not digests:
            return
        self._read_at = float("-inf")
        spent = {f"{prefix}{each}" for each in digests for prefix in (ANNOTATION, HELD_ANNOTATION)}
        # A failure is harmless: the digest identifies an object that is gone, so it cannot release anything else.
        self._write(lambda present: {key: value for key, value in present.items() if key not in spent})

    def record(self, held: Mapping[str, Iterable[Action]]) -> None:
        """Tell `confirm`, on the Lease, what these controllers hold now, and that they hold nothing else."""
        self._write(lambda present: _recording(present, held, held.keys()))

    def _write(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        try:
            _annotate(self._kube, self._namespace, self._lease, change)
        except ApiError as error:
            _log.warning("could not write held actions and confirmations error=%r", str(error))

    def held(self) -> tuple[Action, ...]:
        """The actions that are held now, by the controllers' last plans."""
        with self._lock:
            return tuple(action for of in self._held.values() for action in of.values())

    def detail(self) -> str | None:
        """The held actions, for /readyz; None if there are none. Held actions do not affect readiness."""
        held = self.held()
        if not held:
            return None
        more = f"; and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
        return f"{len(held)} held: {'; '.join(map(str, held[:_SHOWN]))}{more}"

    def watch(
        self, stop: threading.Event, controllers: Collection[str], wake: Callable[[str, frozenset[str]], None]
    ) -> None:
        """Until `stop` is set, keep on the Lease what these controllers hold, for `confirm`, and call
        `wake(controller, targets)` for held actions that have been confirmed."""
        settled = False  # A former process may have left something.
        while not stop.wait(_PERIOD):
            with self._lock:
                held = {name: tuple(self._held.get(name, {}).values()) for name in controllers}
            if settled and not any(held.values()):
                continue
            try:
                present = _annotations(self._kube, self._namespace, self._lease)
                current = _recording(present, held, controllers) == present
                if not current:
                    self.record(held)
            except ApiError as error:
                _log.warning("could not read confirmations error=%r", str(error))
                continue
            except WriteRefused:
                return  # The process ends.
            settled = current
            digests = frozenset(_digests(present, ANNOTATION))
            self._confirmed, self._read_at = digests, self._clock()
            for controller, actions in held.items():
                if targets := frozenset(action.target for action in actions if action.held in digests):
                    wake(controller, targets)

    def _read(self) -> frozenset[str]:
        if self._clock() >= self._read_at + _PERIOD:
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
        """Report newly held actions, once each; see `admit`."""
        now = {f"{action.held}{action.target}": action for action in held}
        with self._lock:
            before = self._held.get(controller, {})
        if now.keys() - before.keys():
            self.verify()  # Before recording them: if this raises, the next attempt still reports them as new.
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
    """The object for an event about the target; the cluster itself if the target is no Kubernetes object."""
    parts = target.split("/")
    if parts[0] == "service" and len(parts) >= 3:
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": parts[1], "name": parts[2]}}
    if parts[0] == "node" and len(parts) >= 2:
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": parts[1]}}
    return CLUSTER
