"""A whole Kubernetes side in memory whose time is the test's: API server, watches that may be late, work queues.

What a controller's process is made of is real; only the API server and the clock are not. A process may die after any
write, on either side, and another one starts from what the API server holds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from cloud_controller.controllers.service.queue import WorkQueue, work
from cloud_controller.kube import (
    LEASES,
    AlreadyExistsError,
    ApiError,
    ConflictError,
    EventType,
    NotFoundError,
    Object,
    PatchType,
    Resource,
    key,
)
from cloud_controller.safeguard import Safeguard
from tests.cloud_controller.guard import lease_that_confirms

Handler = Callable[[EventType, Object | None, Object | None], None]

MOST_WORK = 2000
"""Keys that one wait for rest may cost; more is a busy loop."""


class Crash(BaseException):
    """The process died."""


@dataclass
class Clock:
    """Seconds that pass when the test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


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


@dataclass
class ApiServer:
    """Objects by plural and key, with what the controllers use of the API; `informers` of the process follow it."""

    writes_left: WritesLeft
    objects: dict[str, dict[str, Object]] = field(default_factory=dict)
    informers: list[InMemoryInformer] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    writes: int = 0
    deleted: list[Object] = field(default_factory=list)
    """What the process deleted."""
    refusals: int = 0
    """So many of the next writes of the process are refused: the API server is just then starting again."""
    _versions: int = 0
    _uids: int = 0

    # ------------------------------------------------------------------------------------- what the controllers call

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        try:
            return copy.deepcopy(self._of(resource.plural)[f"{namespace}/{name}" if namespace else name])
        except KeyError:
            raise NotFoundError(404, "NotFound", f"{resource.plural} {name} is gone") from None

    def list(self, resource: Resource) -> _Items:
        return _Items(copy.deepcopy([*self._of(resource.plural).values()]))

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object,
        namespace: str | None = None,
        *,
        type: PatchType,
        subresource: str = "",
    ) -> Object:
        if resource.plural == "events":
            raise NotFoundError(404, "NotFound", "events are told anew each time")
        self._refuse()
        present = self.get(resource, name, namespace)
        changed = copy.deepcopy(present)
        for name_of, value in patch.get("metadata", {}).items():
            if name_of in ("uid", "resourceVersion") and present["metadata"][name_of] != value:
                raise ConflictError(409, "Conflict", f"{name}: {name_of} is {present['metadata'][name_of]}")
        part = {"status": patch.get("status", {})} if subresource == "status" else {**patch, "status": {}}
        _merge(changed, part, type)
        if changed != present:
            self.writes += 1
            self.put(resource.plural, changed)
            self.writes_left.written()
        return self.objects[resource.plural].get(key(changed), changed)

    def delete(self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None) -> None:
        self._refuse()
        present = self.get(resource, name, namespace)
        if uid is not None and present["metadata"]["uid"] != uid:
            raise ConflictError(409, "Conflict", f"{name} has another UID")
        self.writes += 1
        self.deleted.append(present)
        self.remove(resource.plural, key(present))
        self.writes_left.written()

    def create(self, resource: Resource, obj: Object, *_: object) -> Object:
        if resource.plural == "events":
            self.events.append((obj["involvedObject"]["name"], obj["reason"], obj["message"]))
            return obj
        self._refuse()
        if key(obj) in self._of(resource.plural):
            raise AlreadyExistsError(409, "AlreadyExists", f"{resource.plural} {key(obj)} is there")
        self.writes += 1
        made = self.put(resource.plural, copy.deepcopy(obj))
        self.writes_left.written()
        return made

    def replace(self, resource: Resource, obj: Object) -> Object:
        self._of(resource.plural)[key(obj)] = obj
        return obj

    def normal(self, obj: Object, reason: str, message: str) -> None:
        self.events.append((obj["metadata"]["name"], reason, message))

    warning = normal

    # ------------------------------------------------------------------------------------------------ what users do

    def put(self, plural: str, obj: Object) -> Object:
        """Store it as the API server would: with a version, gone once it is deleted and nobody holds it."""
        self._versions += 1
        obj["metadata"]["resourceVersion"] = str(self._versions)
        if "uid" not in obj["metadata"]:
            self._uids += 1
            obj["metadata"]["uid"] = f"uid-{self._uids}"
        old = self._of(plural).get(key(obj))
        gone = bool(obj["metadata"].get("deletionTimestamp")) and not obj["metadata"].get("finalizers")
        if gone:
            self._of(plural).pop(key(obj), None)
        else:
            self._of(plural)[key(obj)] = obj
        if old is not None or not gone:
            self._tell(plural, EventType.DELETED if gone else EventType.MODIFIED if old else EventType.ADDED, obj)
        return obj

    def remove(self, plural: str, key: str) -> None:
        """Delete it, or mark it as deleted while it has finalizers."""
        obj = copy.deepcopy(self._of(plural)[key])
        if obj["metadata"].get("finalizers"):
            obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.put(plural, obj)
        else:
            del self._of(plural)[key]
            self._tell(plural, EventType.DELETED, obj)

    def change(self, plural: str, key: str, change: Callable[[Object], None]) -> None:
        """Somebody changes an object."""
        obj = copy.deepcopy(self._of(plural)[key])
        change(obj)
        self.put(plural, obj)

    def all(self, plural: str) -> dict[str, Object]:
        """What is stored."""
        return self._of(plural)

    def confirm_all(self, safeguard: Safeguard) -> None:
        """An administrator confirms whatever is held."""
        if safeguard.held():
            self.replace(LEASES, lease_that_confirms(safeguard))

    # ------------------------------------------------------------------------------------------------------ helpers

    def _of(self, plural: str) -> dict[str, Object]:
        return self.objects.setdefault(plural, {})

    def _refuse(self) -> None:
        if self.refusals > 0:
            self.refusals -= 1
            raise ApiError(503, "ServiceUnavailable", "the API server is starting")

    def _tell(self, plural: str, type: EventType, obj: Object) -> None:
        for informer in self.informers:
            if informer.plural == plural:
                informer.take(type, copy.deepcopy(obj))


@dataclass
class _Items:
    items: list[Object]


class InMemoryInformer:
    """A copy of one kind of objects in the process; while it is `held`, what happens arrives later."""

    def __init__(self, api: ApiServer, plural: str) -> None:
        self.plural = plural
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
        present = copy.deepcopy(self._api.all(self.plural))
        for gone in [*(self._copies.keys() - present.keys())]:
            self._forget(self._copies[gone])
        for obj in present.values():
            self.take(EventType.MODIFIED, obj)

    def _call(self, type: EventType, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            handler(type, old, new)


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


def _merge(target: Object, patch: Object, how: PatchType) -> None:
    for name, value in patch.items():
        if name == "$deleteFromPrimitiveList/finalizers":
            target["finalizers"] = [each for each in target.get("finalizers") or [] if each not in value]
        elif name == "finalizers" and how is PatchType.STRATEGIC:
            target[name] = list(dict.fromkeys([*(target.get(name) or []), *value]))
        elif name == "conditions" and how is PatchType.STRATEGIC:
            new = {each["type"] for each in value}
            target[name] = [each for each in target.get(name) or [] if each["type"] not in new] + value
        elif value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            _merge(target.setdefault(name, {}), value, how)
        else:
            target[name] = value
