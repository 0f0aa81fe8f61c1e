"""What the controllers tell people at the objects themselves: Kubernetes Events, repeated ones counted."""

from __future__ import annotations

import hashlib
import logging
import queue
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from cloud_controller.fence import WriteRefused
from cloud_controller.kube import EVENTS, ApiError, KubeApi, NotFoundError, Object, PatchType, name, namespace, uid

NORMAL = "Normal"
WARNING = "Warning"

CLUSTER: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
"""The object of events about the whole cluster. They stand in namespace `default`, beside those of nodes."""

_REMEMBERED = 4096
"""Distinct events whose counts are kept; the API server itself forgets an event after an hour."""
_MESSAGE_LIMIT = 1024
_NAME_LIMIT = 253 - 17
"""Of the object's name in the event's, so that this is one for an object of whatever name."""

_log = logging.getLogger(__name__)


class Events(Protocol):
    """Where a controller's events go. `obj` is the whole object, or any dict with kind and metadata."""

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Something happened as it should; `reason` is one word in CamelCase."""
        ...

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Something needs a person's attention."""
        ...


@dataclass(frozen=True, slots=True)
class _Said:
    obj: Object
    type: str
    reason: str
    message: str


class EventRecorder:
    """Writes events as core/v1 Events in a thread of its own; the same event again raises its count.

    Events are for people: one that can't be written is logged and dropped, never retried, and never fails a controller.
    """

    def __init__(
        self,
        kube: KubeApi,
        component: str,
        *,
        capacity: int = 10_000,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube = kube
        self._component = component
        self._now = now
        self._host = socket.gethostname()
        self._queue: queue.Queue[_Said | None] = queue.Queue(capacity)
        self._counts: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """See `Events.normal`."""
        self._say(_Said(_reference(obj), NORMAL, reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """See `Events.warning`."""
        self._say(_Said(_reference(obj), WARNING, reason, message))

    def close(self, timeout: float = 5.0) -> bool:
        """Write what is queued and end the thread; False if that took longer than `timeout` seconds."""
        with self._lock:
            thread = self._thread
        if thread is None:
            return True
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            return False
        thread.join(timeout)
        return not thread.is_alive()

    def _say(self, said: _Said) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"events-{self._component}", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait(said)
        except queue.Full:
            _log.warning("event dropped reason=%s object=%s", said.reason, name(said.obj))

    def _run(self) -> None:
        while (said := self._queue.get()) is not None:
            try:
                self._write(said)
            except (ApiError, WriteRefused) as error:
                _log.warning("event not written reason=%s error=%r", said.reason, str(error))

    def _write(self, said: _Said) -> None:
        space = namespace(said.obj) or "default"
        known = "\0".join((uid(said.obj), name(said.obj), said.type, said.reason, said.message))
        now = self._now()
        event_name, count = self._counts.get(known, ("", 0))
        if count:
            patch = {"count": count + 1, "lastTimestamp": _rfc3339(now)}
            try:
                self._kube.patch(EVENTS, event_name, patch, space, type=PatchType.MERGE)
            except NotFoundError:  # It has expired.
                count = 0
        if not count:
            event = self._event(said, space, known, now)
            event_name = event["metadata"]["name"]
            self._kube.create(EVENTS, event)
        self._counts[known] = (event_name, count + 1)
        self._counts.move_to_end(known)
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)

    def _event(self, said: _Said, space: str, known: str, now: datetime) -> dict[str, Any]:
        digest = hashlib.sha256(f"{known}\0{now.isoformat()}\0{self._host}".encode()).hexdigest()[:16]
        involved = {
            "apiVersion": said.obj.get("apiVersion", "v1"),
            "kind": said.obj.get("kind"),
            "name": name(said.obj),
            "namespace": namespace(said.obj),
            "uid": uid(said.obj) or None,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name(said.obj)[:_NAME_LIMIT].rstrip('-.')}.{digest}", "namespace": space},
            "involvedObject": {k: v for k, v in involved.items() if v},
            "type": said.type,
            "reason": said.reason,
            "message": said.message[:_MESSAGE_LIMIT],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
            "firstTimestamp": _rfc3339(now),
            "lastTimestamp": _rfc3339(now),
            "count": 1,
        }


def _reference(obj: Object) -> Object:
    """What an event needs of the object: thousands may wait to be written."""
    named = {k: v for k, v in obj["metadata"].items() if k in ("name", "namespace", "uid")}
    return {**{k: obj[k] for k in ("apiVersion", "kind") if k in obj}, "metadata": named}


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
