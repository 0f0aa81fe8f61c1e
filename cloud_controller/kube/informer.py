"""A local copy of one kind of object, kept up to date by list and watch, that tells handlers what changed."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from cloud_controller.kube.client import Kube
from cloud_controller.kube.errors import ApiError, GoneError
from cloud_controller.kube.resources import EventType, Object, Resource, key
from cloud_controller.kube.watch import Watch

Handler = Callable[[EventType, Object | None, Object | None], None]
"""Called as `(type, old, new)`: ADDED has no old, DELETED no new (its old is the last state)."""

_FIRST_BACKOFF = 0.2
_LONGEST_BACKOFF = 10.0

_log = logging.getLogger(__name__)


class Informer:
    """Objects of one resource by key (`NAMESPACE/NAME` or `NAME`).

    A daemon thread lists, watches from there, resumes where a watch ended, lists again when the server has forgotten
    that point or did not answer (deletions missed meanwhile are told as DELETED), and backs off with jitter until it
    does. Handlers run in that thread, in order: they must be quick. Objects are shared: treat them as read-only.
    They carry no `metadata.managedFields`.
    """

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> None:
        self.resource = resource
        self._kube = kube
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._objects: dict[str, Object] = {}
        self._resource_version = ""
        self._changed = threading.Condition()
        self._handlers: list[Handler] = []
        self._deletion_handlers: list[Callable[[Object], None]] = []
        self._stop = threading.Event()
        self._synced = False
        self._error: ApiError | None = None
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None

    def add_handler(self, handler: Handler) -> None:
        """Tell `handler` of every object and change; only before `start` (RuntimeError afterwards)."""
        self._require_not_started()
        self._handlers.append(handler)

    def add_deletion_handler(self, handler: Callable[[Object], None]) -> None:
        """Tell `handler` the last state of each object whose deletion the watch reports, before the other handlers.

        An object that a list merely lacks was perhaps never deleted: etcd may have been restored. Only before `start`
        (RuntimeError afterwards).
        """
        self._require_not_started()
        self._deletion_handlers.append(handler)

    def _require_not_started(self) -> None:
        if self._thread is not None:
            raise RuntimeError(f"the informer of {self.resource.plural} runs already; add handlers before start")

    def start(self) -> None:
        """Begin to list and watch; returns at once."""
        if self._thread is not None:
            raise RuntimeError(f"the informer of {self.resource.plural} was started before")
        self._thread = threading.Thread(target=self._run, name=f"informer-{self.resource.plural}", daemon=True)
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """End the watch and, with `wait`, wait for the thread; the copy stays readable."""
        self._stop.set()
        with self._changed:
            watch = self._watch
            self._changed.notify_all()
        if watch is not None:
            watch.close()
        if wait and self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def synced(self) -> bool:
        """Whether the first list has been taken over, and told to the handlers."""
        return self._synced

    @property
    def error(self) -> ApiError | None:
        """Why the copy may be out of date now; None while list or watch work."""
        return self._error

    def wait_synced(self, timeout: float) -> None:
        """Wait until the first list is taken over. Raises TimeoutError, with the last error, at `timeout` seconds."""
        if not self.wait_until(lambda: self._synced, timeout):
            why = f": {self._error}" if self._error else ""
            raise TimeoutError(f"{self.resource.plural} could not be listed within {timeout:g} s{why}")

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait until `condition()` holds; it is looked at whenever handlers were told of a change.

        False after `timeout` seconds or `stop`.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition():
                if self._stop.is_set() or not self._changed.wait(deadline - time.monotonic()):
                    return condition()
        return True

    def get(self, key: str) -> Object | None:
        """The object of this key (`NAMESPACE/NAME` or `NAME`), or None."""
        return self._objects.get(key)

    def items(self) -> list[Object]:
        """Every object, in no order."""
        with self._changed:
            return list(self._objects.values())

    # ---------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        backoff = _FIRST_BACKOFF
        while not self._stop.is_set():
            try:
                if not self._resource_version:
                    self._list()
                started = time.monotonic()
                self._follow()
                if time.monotonic() - started > 1.0:
                    backoff = _FIRST_BACKOFF
                    continue
            except GoneError:
                _log.info("relist resource=%s reason=%r", self.resource.plural, "the watch fell behind")
                self._resource_version = ""
            except ApiError as error:
                _log.warning("watch failed resource=%s error=%r", self.resource.plural, str(error))
                self._fail(error)
                # The server may come back with a restored etcd, whose versions are older: a watch from here on would
                # report nothing for a long time.
                self._resource_version = ""
            # Also after a watch that ended at once, so that a server which does so is not called in a loop.
            if self._stop.wait(backoff * random.uniform(0.5, 1.0)):
                return
            backoff = min(backoff * 2, _LONGEST_BACKOFF)

    def _list(self) -> None:
        found = self._kube.list(
            self.resource, self._namespace, label_selector=self._label_selector, field_selector=self._field_selector
        )
        fresh = {key(obj): obj for obj in found.items}
        for gone in [k for k in self._objects if k not in fresh]:
            self._take(EventType.DELETED, gone, None)
        for k, obj in fresh.items():
            old = self._objects.get(k)
            if old is None:
                self._take(EventType.ADDED, k, obj)
            elif old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._replace(k, old, obj)
        self._resource_version = found.resource_version
        with self._changed:
            self._synced = True
            self._error = None
            self._changed.notify_all()

    def _follow(self) -> None:
        watch = self._kube.watch(
            self.resource,
            self._namespace,
            resource_version=self._resource_version,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        with self._changed:
            self._watch = watch
            self._error = None
        if self._stop.is_set():  # `stop` came between the request and the line above.
            watch.close()
        for event in watch:
            obj = event.object
            if event.type is not EventType.BOOKMARK:
                self._event(event.type, obj)
            self._resource_version = obj["metadata"]["resourceVersion"]

    def _event(self, type: EventType, obj: Object) -> None:
        k = key(obj)
        old = self._objects.get(k)
        if type is EventType.DELETED:
            with self._changed:
                self._objects[k] = obj  # The event tells the last state.
            for handler in self._deletion_handlers:
                handler(obj)
            self._take(EventType.DELETED, k, None)
        elif old is None:
            self._take(EventType.ADDED, k, obj)
        else:
            self._replace(k, old, obj)

    def _replace(self, k: str, old: Object, new: Object) -> None:
        if old["metadata"].get("uid") == new["metadata"].get("uid"):
            self._take(EventType.MODIFIED, k, new)
        else:  # Deleted and created again while nobody looked.
            self._take(EventType.DELETED, k, None)
            self._take(EventType.ADDED, k, new)

    def _take(self, type: EventType, k: str, new: Object | None) -> None:
        with self._changed:
            old = self._objects.get(k)
            if new is None:
                self._objects.pop(k, None)
            else:
                new["metadata"].pop("managedFields", None)
                self._objects[k] = new
        for handler in self._handlers:
            try:
                handler(type, old, new)
            except Exception:  # noqa: BLE001 - a handler's bug must not end the copy that the other handlers live on
                _log.exception("handler failed resource=%s key=%s", self.resource.plural, k)
        with self._changed:
            self._changed.notify_all()

    def _fail(self, error: ApiError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()
