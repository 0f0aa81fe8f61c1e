"""Records Kubernetes Events, and counts repeated ones."""

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
"""The object of events about the whole cluster. They appear in namespace `default`, like those of nodes."""

_REMEMBERED = 4096
"""Number of distinct events whose counts are kept; the API server itself deletes events after an hour."""
_MESSAGE_LIMIT = 1024
_NAME_LIMIT = 253 - 17
"""Maximum length of the object's name in the event's name, which also contains a digest."""

_log = logging.getLogger(__name__)


class Events(Protocol):
    """Receives a controller's events. `obj`: the object, or any dict with its kind and metadata."""

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Report a normal event; `reason` is one CamelCase word."""
        ...

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Report something that needs attention."""
        ...


@dataclass(frozen=True, slots=True)
class _Event:
    obj: Object
    type: str
    reason: str
    message: str


class EventRecorder:
    """Writes core/v1 Events in its own thread; a repeated event increases its count.

    Best effort: an event that cannot be written is logged and dropped; it never fails a controller.
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
        self._queue: queue.Queue[_Event | None] = queue.Queue(capacity)
        self._counts: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """See `Events.normal`."""
        self._enqueue(_Event(_reference(obj), NORMAL, reason, message))

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """See `Events.warning`."""
        self._enqueue(_Event(_reference(obj), WARNING, reason, message))

    def close(self, timeout: float = 5.0) -> bool:
        """Write the queued events and stop the thread; False if that takes longer than `timeout` seconds."""
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

    def _enqueue(self, event: _Event) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"events-{self._component}", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            _log.warning("event dropped reason=%s object=%s", event.reason, name(event.obj))

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._write(event)
            except (ApiError, WriteRefused) as error:
                _log.warning("event not written reason=%s error=%r", event.reason, str(error))

    def _write(self, event: _Event) -> None:
        space = namespace(event.obj) or "default"
        known = "\0".join((uid(event.obj), name(event.obj), event.type, event.reason, event.message))
        now = self._now()
        event_name, count = self._counts.get(known, ("", 0))
        if count:
            patch = {"count": count + 1, "lastTimestamp": _rfc3339(now)}
            try:
                self._kube.patch(EVENTS, event_name, patch, space, type=PatchType.MERGE)
            except NotFoundError:  # The event has expired.
                count = 0
        if not count:
            written = self._manifest(event, space, known, now)
            event_name = written["metadata"]["name"]
            self._kube.create(EVENTS, written)
        self._counts[known] = (event_name, count + 1)
        self._counts.move_to_end(known)
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)

    def _manifest(self, event: _Event, space: str, known: str, now: datetime) -> dict[str, Any]:
        digest = hashlib.sha256(f"{known}\0{now.isoformat()}\0{self._host}".encode()).hexdigest()[:16]
        involved = {
            "apiVersion": event.obj.get("apiVersion", "v1"),
            "kind": event.obj.get("kind"),
            "name": name(event.obj),
            "namespace": namespace(event.obj),
            "uid": uid(event.obj) or None,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name(event.obj)[:_NAME_LIMIT].rstrip('-.')}.{digest}", "namespace": space},
            "involvedObject": {k: v for k, v in involved.items() if v},
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:_MESSAGE_LIMIT],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._host,
            "firstTimestamp": _rfc3339(now),
            "lastTimestamp": _rfc3339(now),
            "count": 1,
        }


def _reference(obj: Object) -> Object:
    """The fields of the object that an event needs: thousands of events may be queued."""
    named = {k: v for k, v in obj["metadata"].items() if k in ("name", "namespace", "uid")}
    return {**{k: obj[k] for k in ("apiVersion", "kind") if k in obj}, "metadata": named}


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
