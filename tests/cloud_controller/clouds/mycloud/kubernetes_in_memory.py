"""A whole Kubernetes side in memory whose time is the test's: API server, watches that may be late, work queues.

What a controller's process is made of is real; only the API server and the clock are not. A process may die after any
write, on either side, and another one starts from what the API server holds.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

from cloud_controller.controllers.loop import EVERYTHING, LoopController
from cloud_controller.controllers.queue import WorkQueue, work
from cloud_controller.kube import EVENTS, LEASES, ApiError, EventType, Handler, Object, Resource, key
from cloud_controller.safeguard import Safeguard
from tests.clock import Clock
from tests.cloud_controller.guard import lease_that_confirms
from tests.fake_kubernetes import WRITES, FakeKubernetes, Request

MOST_WORK = 2000
"""Keys that one wait for rest may cost; more is a busy loop."""


class Crash(BaseException):
    """The process died."""


@dataclass
class WritesLeft:
    """After how many more writes the process dies; None: never."""

    count: int | None = None

    def written(self) -> None:
        if self.count is not None:
            self.count -= 1
            if self.count <= 0:
                self.count = None
                raise Crash


class ApiServer(FakeKubernetes):
    """One whose clients may die after any write; `informers` of the process follow it, perhaps late."""

    def __init__(self, writes_left: WritesLeft) -> None:
        super().__init__()
        self.informers: list[InMemoryInformer] = []
        self.refusals = 0
        """So many of the next writes of the process are refused: the API server is just then starting again."""
        self._writes_left = writes_left
        self.before.append(self._refuse)
        self.after.append(self._written)

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.events.append((obj["metadata"]["name"], reason, message))

    warning = normal

    def confirm_all(self, safeguard: Safeguard) -> None:
        """An administrator confirms whatever is held."""
        if safeguard.held():
            self.put(LEASES, lease_that_confirms(safeguard))

    def _refuse(self, request: Request) -> None:
        if self.refusals > 0 and _is_write(request):
            self.refusals -= 1
            raise ApiError(503, "ServiceUnavailable", "the API server is starting")

    def _written(self, request: Request) -> None:
        if _is_write(request):
            self._writes_left.written()

    def _tell(self, resource: Resource, type: EventType, old: Object | None, new: Object | None) -> None:
        super()._tell(resource, type, old, new)
        for informer in self.informers:
            if informer.resource == resource and (obj := new or old):
                informer.take(type, copy.deepcopy(obj))


def _is_write(request: Request) -> bool:
    return request.verb in WRITES and request.resource not in (EVENTS, LEASES)


class InMemoryInformer:
    """A copy of one kind of objects in the process; while it is `held`, what happens arrives later."""

    def __init__(self, api: ApiServer, resource: Resource) -> None:
        self.resource = resource
        self.held = False
        self._api = api
        self._copies: dict[str, Object] = {}
        self._handlers: list[Handler] = []
        self._deletion_handlers: list[Callable[[Object], None]] = []
        self._late: list[tuple[EventType, Object]] = []
        api.informers.append(self)

    def add_handler(self, handler: Handler) -> None:
        self._handlers.append(handler)

    def add_deletion_handler(self, handler: Callable[[Object], None]) -> None:
        self._deletion_handlers.append(handler)

    def get(self, key: str) -> Object | None:
        return self._copies.get(key)

    def items(self) -> list[Object]:
        return [*self._copies.values()]

    def take(self, type: EventType, obj: Object) -> None:
        """An event of the watch."""
        if self.held:
            self._late.append((type, obj))
            return
        old = self._copies.get(key(obj))
        if type is EventType.DELETED:
            for handler in self._deletion_handlers:
                handler(obj)
            self._forget(obj)
        elif old is not None and old["metadata"]["uid"] != obj["metadata"]["uid"]:
            self._call(EventType.DELETED, old, None)
            self._copies[key(obj)] = obj
            self._call(EventType.ADDED, None, obj)
        else:
            self._copies[key(obj)] = obj
            self._call(EventType.MODIFIED if old else EventType.ADDED, old, obj)

    def _forget(self, obj: Object) -> None:
        self._copies.pop(key(obj), None)
        self._call(EventType.DELETED, obj, None)

    def resume(self) -> None:
        """The watch goes on, with everything that happened meanwhile."""
        self.held = False
        late, self._late = self._late, []
        for happened, obj in late:
            self.take(happened, obj)

    def relist(self) -> None:
        """The watch was too far behind: only what is there now can be seen. Also how the copy is first filled."""
        self.held = False
        self._late.clear()
        present = copy.deepcopy(self._api.objects(self.resource))
        for gone in [*(self._copies.keys() - present.keys())]:
            self._forget(self._copies[gone])
        for obj in present.values():
            self.take(EventType.MODIFIED, obj)

    def _call(self, type: EventType, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(type, old, new)


def one_pass(controller: LoopController, *, everything: bool) -> bool:
    """A pass as the loop makes it, over everything or over what is due; whether all of it succeeded."""
    queue = controller._queue
    batch = queue.get_batch() - {EVERYTHING}
    queue.done(EVERYTHING)
    before, no_pause = queue.retries, cast(threading.Event, SimpleNamespace(wait=lambda _: None))
    if everything or batch:
        controller._pass(batch | {EVERYTHING} if everything else batch, no_pause)
    return controller.trouble() is None and queue.retries == before


class StepQueue(WorkQueue[str]):
    """A queue whose `get` never waits: None means that nothing is due at this moment."""

    def get(self, timeout: float | None = None) -> str | None:  # noqa: ARG002
        return super().get(timeout=0)

    def next_due(self) -> float | None:
        """When the next key is due."""
        return min(self._due.values(), default=None)


@dataclass
class Worker:
    """One worker of a queue, and the passing of time."""

    queue: StepQueue
    clock: Clock
    handle: Callable[[str], None]
    work_left: int = MOST_WORK

    def run(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Work for so many seconds; `meanwhile`: what the rest of the world does whenever the queue is empty."""
        end = self.clock.now + seconds
        self.work_left = MOST_WORK
        while True:
            work(self.queue, self._counted)
            meanwhile()
            due = self.queue.next_due()
            if due is None or due > end:
                break
            self.clock.now = max(self.clock.now, due)
        self.clock.now = max(self.clock.now, end)

    def _counted(self, key: str) -> None:
        self.work_left -= 1
        assert self.work_left > 0, f"it does not come to rest; now it works on {key}"
        self.handle(key)
