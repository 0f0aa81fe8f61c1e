"""An informer: a local cache of one kind of object, updated by list and watch, with change handlers."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from cloud_controller import retries
from cloud_controller.kube.client import Kube
from cloud_controller.kube.resources import EventType, Object, Resource, key
from cloud_controller.kube.watch import Watch
from cloud_controller.kube_errors import ApiError, GoneError

Handler = Callable[[EventType, Object | None, Object | None], None]
"""Called with `(type, old, new)`. ADDED has no old; DELETED has no new, and its old is the last state."""

_FIRST_BACKOFF = 0.2
_LONGEST_BACKOFF = 10.0

_log = logging.getLogger(__name__)


class Informer:
    """Objects of one resource by key (`NAMESPACE/NAME` or `NAME`).

    A daemon thread lists, watches, and resumes ended watches. After an error, or if the resource version is too old, it
    lists again with backoff and jitter; missed deletions are reported as DELETED. Handlers run in that thread, in
    order, SO THEY MUST BE FAST. OBJECTS ARE SHARED: DO NOT MODIFY THEM. `metadata.managedFields` is removed.

    `keep`: which objects to cache; one that changes into another is reported as DELETED.
    """

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        keep: Callable[[Object], bool] | None = None,
    ) -> None:
        self.resource = resource
        self._kube = kube
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._keep = keep
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
        """Call `handler` for every object and change. Only before `start` (else RuntimeError)."""
        self._require_not_started()
        self._handlers.append(handler)

    def add_deletion_handler(self, handler: Callable[[Object], None]) -> None:
        """Call `handler` with the last state of each object whose deletion the watch reports, before other handlers.

        Not called for objects that are merely missing from a list: etcd may have been restored. Only before `start`
        (else RuntimeError).
        """
        self._require_not_started()
        self._deletion_handlers.append(handler)

    def _require_not_started(self) -> None:
        if self._thread is not None:
            raise RuntimeError(f"the informer of {self.resource.plural} is already running; add handlers before start")

    def start(self) -> None:
        """Start the thread."""
        if self._thread is not None:
            raise RuntimeError(f"the informer of {self.resource.plural} has already been started")
        self._thread = threading.Thread(target=self._run, name=f"informer-{self.resource.plural}", daemon=True)
        self._thread.start()

    def stop(self, *, wait: bool = True) -> None:
        """End the watch and, with `wait`, wait for the thread. The cache stays readable."""
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
        """Whether the first list is in the cache and the handlers have been called."""
        return self._synced

    @property
    def error(self) -> ApiError | None:
        """Why the cache may be stale; None while list and watch work."""
        return self._error

    def wait_synced(self, timeout: float) -> None:
        """Wait until `synced`. Raises TimeoutError, with the last error, after `timeout` seconds."""
        if not self.wait_until(lambda: self._synced, timeout):
            why = f": {self._error}" if self._error else ""
            raise TimeoutError(f"{self.resource.plural} could not be listed within {timeout:g} s{why}")

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Wait until `condition()` is true, checking after every change. False after `timeout` seconds or `stop`."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition():
                if self._stop.is_set() or not self._changed.wait(deadline - time.monotonic()):
                    return condition()
        return True

    def get(self, key: str) -> Object | None:
        """The object with this key (`NAMESPACE/NAME` or `NAME`), or None."""
        return self._objects.get(key)

    def items(self) -> list[Object]:
        """All objects, in no particular order."""
        with self._changed:
            return list(self._objects.values())

    # ---------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                if not self._resource_version:
                    self._list()
                started = time.monotonic()
                self._follow()
                if time.monotonic() - started > 1.0:
                    failures = 0
                    continue
            except GoneError:
                _log.info("relist resource=%s reason=%r", self.resource.plural, "resource version too old")
                self._resource_version = ""
            except ApiError as error:
                _log.warning("watch failed resource=%s error=%r", self.resource.plural, str(error))
                self._fail(error)
                # The server may return with a restored etcd and older versions: a watch from the present version would
                # report nothing for a long time.
                self._resource_version = ""
            # Also back off after a watch that ended immediately, so as not to call such a server in a loop.
            failures += 1
            pause = retries.backoff(failures, _FIRST_BACKOFF, _LONGEST_BACKOFF)
            if self._stop.wait(pause * random.uniform(0.5, 1.0)):
                return

    def _list(self) -> None:
        found = self._kube.list(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            keep=self._keep,
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
        if self._stop.is_set():  # `stop` was called between the request and the assignment.
            watch.close()
        for event in watch:
            obj = event.object
            if event.type is not EventType.BOOKMARK:
                self._event(event.type, obj)
            self._resource_version = obj["metadata"]["resourceVersion"]

    def _event(self, type: EventType, obj: Object) -> None:
        k = key(obj)
        old = self._objects.get(k)
        if self._keep is not None and not self._keep(obj):
            if old is not None:
                self._take(EventType.DELETED, k, None)
        elif type is EventType.DELETED:
            with self._changed:
                self._objects[k] = obj  # The event has the last state.
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
        else:  # Deleted and recreated between two events.
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
            except Exception:  # noqa: BLE001 - a bug in one handler must not stop the informer for the others
                _log.exception("handler failed resource=%s key=%s", self.resource.plural, k)
        with self._changed:
            self._changed.notify_all()

    def _fail(self, error: ApiError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()
