"""The Kubernetes API in memory, for every test that needs no real API server.

    api = FakeKubernetes()
    api.put(NODES, {"metadata": {"name": "a"}})
    patch_node(api, api.get(NODES, "a"), change)
    assert api.writes == ["patch nodes/a"]

`put`, `change` and `remove` are what other users of the cluster do; `requests` records what the code under test asked.
It versions objects, refuses stale writes, holds deletions for finalizers and merges patches as the API server does.
It neither validates nor defaults, and has no selectors, watches or server-side apply: those need the fixture `kube`.
"""

from __future__ import annotations

import copy
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from cloud_controller.fence import Fence, unfenced
from cloud_controller.kube import (
    EVENTS,
    AlreadyExistsError,
    ConflictError,
    EventType,
    Handler,
    InvalidError,
    NotFoundError,
    Object,
    ObjectList,
    PatchType,
    Resource,
    key,
    name,
    namespace,
)

T = TypeVar("T")

WRITES = ("create", "replace", "patch", "delete")


@dataclass(frozen=True)
class Request:
    """One call of a client; `body` is the object or patch that it sent, or the UID that a deletion required."""

    verb: str
    resource: Resource
    key: str = ""
    body: Any = None
    subresource: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {'/'.join(filter(None, (self.resource.plural, self.key, self.subresource)))}"


Hook = Callable[[Request], None]


class FakeKubernetes:
    """A `KubeApi`. Safe to share between threads.

    Hooks in `before` run before a request is carried out: `fail` refuses requests, `meddle` lets somebody else write
    first. Those in `after` run once it is carried out: to lose its answer.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        """What was carried out, in order."""
        self.deleted: list[Object] = []
        """What clients deleted, as it was."""
        self.events: list[tuple[str, str, str]] = []
        """Object, reason and message of each Event that was written or counted again."""
        self.reviews: dict[Resource, Callable[[Object], Object]] = {}
        """Resources whose objects are answered and not stored."""
        self.raws: dict[str, bytes | Exception] = {}
        """What a request of any other path gets, by the path and its query; others do not exist."""
        self.git_version = "v0.0.0-fake"
        self.server = "http://fake:6443"
        self.bearer: str | None = None
        self.client_certificate: bytes | None = None
        self.before: list[Hook] = []
        self.after: list[Hook] = []
        self._fence: Fence = unfenced
        self._objects: dict[Resource, dict[str, Object]] = {}
        self._followers: list[tuple[Resource, Handler]] = []
        self._numbers: Iterator[int] = itertools.count(1)
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------------------------------ a client's calls

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        request = Request("get", resource, _key(resource, name, namespace))
        return self._carry_out(request, lambda: self._present(resource, request.key))

    def list(self, resource: Resource, namespace: str | None = None) -> ObjectList:
        def items() -> ObjectList:
            found = [copy.deepcopy(each) for each in self.objects(resource).values()]
            within = [each for each in found if namespace in (None, each["metadata"].get("namespace"))]
            return ObjectList(within, str(next(self._numbers)))

        return self._carry_out(Request("list", resource, namespace or ""), items)

    def create(self, resource: Resource, obj: Object) -> Object:
        if resource in self.reviews:
            return self._carry_out(Request("create", resource, body=obj), lambda: self.reviews[resource](obj))
        request = Request("create", resource, _key_of(resource, obj), obj)

        def create() -> Object:
            if request.key in self.objects(resource):
                raise AlreadyExistsError(409, "AlreadyExists", f'{resource.plural} "{request.key}" already exists')
            return self._store(resource, obj)

        return self._carry_out(request, create)

    def replace(self, resource: Resource, obj: Object) -> Object:
        request = Request("replace", resource, _key_of(resource, obj), obj)

        def replace() -> Object:
            present = self._present(resource, request.key)
            _require_current(present, obj, ConflictError(409, "Conflict", f"{request}: another UID"))
            return self._write(resource, present, copy.deepcopy(obj), None)

        return self._carry_out(request, replace)

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        type: PatchType,
        subresource: str | None = None,
    ) -> Object:
        assert type in (PatchType.MERGE, PatchType.STRATEGIC), type
        request = Request("patch", resource, _key(resource, name, namespace), patch, subresource)

        def apply() -> Object:
            present = self._present(resource, request.key)
            causes = [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "field is immutable"}]
            immutable = InvalidError(422, "Invalid", f"{request}: field is immutable", {"causes": causes})
            _require_current(present, patch, immutable)
            return self._write(resource, present, merged(present, copy.deepcopy(patch), type), subresource)

        return self._carry_out(request, apply)

    def delete(self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None) -> None:
        request = Request("delete", resource, _key(resource, name, namespace), uid)

        def delete() -> None:
            present = self._present(resource, request.key)
            if uid not in (None, present["metadata"]["uid"]):
                raise ConflictError(409, "Conflict", f"{request}: the UID is {present['metadata']['uid']}, not {uid}")
            self.deleted.append(present)
            self.remove(resource, request.key)

        self._carry_out(request, delete)

    def version(self) -> dict[str, str]:
        return {"gitVersion": self.git_version}

    def raw(self, method: str, path: str, *, query: Mapping[str, str] | None = None) -> bytes:
        assert method == "GET", method
        asked = f"{path}?{urlencode(query)}" if query else path
        answer = self.raws.get(asked, NotFoundError(404, "NotFound", f"GET {asked}: not found"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def token(self) -> str | None:
        return self.bearer

    def certificate(self) -> bytes | None:
        return self.client_certificate

    def fenced(self, fence: Fence) -> FakeKubernetes:
        fenced = copy.copy(self)
        fenced._fence = fence
        return fenced

    def with_timeout(self, seconds: float) -> FakeKubernetes:  # noqa: ARG002
        return self.fenced(unfenced)

    def close(self) -> None:
        """There is no connection."""

    # --------------------------------------------------------------------------------------------------- a test's side

    def put(self, resource: Resource, *objects: Object) -> None:
        """Somebody creates or replaces these objects, whatever their versions."""
        with self._lock:
            for each in objects:
                self._store(resource, each)

    def change(self, resource: Resource, key: str, change: Callable[[Object], object]) -> None:
        """Somebody changes an object."""
        with self._lock:
            changed = self._present(resource, key)
            change(changed)
            self._store(resource, changed)

    def remove(self, resource: Resource, key: str) -> None:
        """Somebody deletes an object; finalizers hold it."""
        with self._lock:
            if self._present(resource, key)["metadata"].get("finalizers"):
                self.change(resource, key, lambda obj: obj["metadata"].setdefault("deletionTimestamp", _NOW))
            else:
                self._tell(resource, EventType.DELETED, self.objects(resource).pop(key), None)

    def objects(self, resource: Resource) -> dict[str, Object]:
        """What is stored, by key (`NAMESPACE/NAME` or `NAME`). A change of it bypasses versions and informers."""
        return self._objects.setdefault(resource, {})

    def informer(self, resource: Resource, keep: Callable[[Object], bool] = lambda _: True) -> FakeInformer:
        """A copy that is always up to date; `keep`: as `Informer` has it."""
        return FakeInformer(self, resource, keep)

    def follow(self, resource: Resource, handler: Handler) -> None:
        """Call `handler` of each change from now on, before the request that makes it returns."""
        self._followers.append((resource, handler))

    def meddle(self, action: Callable[[], object], *verbs: str, times: float = math.inf) -> None:
        """Call `action` before each of the next `times` requests of these verbs (of all, without)."""
        left = times

        def before(request: Request) -> None:
            nonlocal left
            if left > 0 and (not verbs or request.verb in verbs):
                left -= 1
                action()

        self.before.append(before)

    def fail(self, error: Exception, *verbs: str, times: float = math.inf) -> None:
        """Refuse the next `times` requests of these verbs (of all, without) with the error."""

        def refuse() -> None:
            raise error

        self.meddle(refuse, *verbs, times=times)

    @property
    def writes(self) -> Sequence[str]:
        """The requests that write anything but Events, each as `VERB PLURAL/KEY[/SUBRESOURCE]`."""
        return [str(each) for each in self.requests if each.verb in WRITES and each.resource != EVENTS]

    # --------------------------------------------------------------------------------------------------------- helpers

    def _carry_out(self, request: Request, action: Callable[[], T]) -> T:
        if request.verb in WRITES:
            self._fence()
        for hook in [*self.before]:
            hook(request)
        with self._lock:
            answer = action()
            self.requests.append(request)
        for hook in [*self.after]:
            hook(request)
        return answer

    def _present(self, resource: Resource, key: str) -> Object:
        if key not in self.objects(resource):
            raise NotFoundError(404, "NotFound", f'{resource.plural} "{key}" not found')
        return copy.deepcopy(self.objects(resource)[key])

    def _write(self, resource: Resource, present: Object, changed: Object, subresource: str | None) -> Object:
        """Store what a request for the object, or for its status, may change of it."""
        assert subresource in (None, "status"), subresource
        whole, status = (present, changed) if subresource else (changed, present)
        written = {part: value for part, value in whole.items() if part != "status"}
        if "status" in status:
            written["status"] = status["status"]
        written["metadata"] |= {each: value for each, value in present["metadata"].items() if each in _OF_THE_SERVER}
        return self._store(resource, written) if written != present else present

    def _store(self, resource: Resource, obj: Object) -> Object:
        new = copy.deepcopy(obj)
        metadata, old = new["metadata"], self.objects(resource).get(_key_of(resource, new))
        metadata["resourceVersion"] = str(next(self._numbers))
        metadata.setdefault("uid", old["metadata"]["uid"] if old else f"uid-{metadata['resourceVersion']}")
        if resource == EVENTS:
            self.events.append((new["involvedObject"]["name"], new["reason"], new["message"]))
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects(resource).pop(key(new), None)
            self._tell(resource, EventType.DELETED, new, None)
        else:
            self.objects(resource)[key(new)] = new
            self._tell(resource, EventType.MODIFIED if old else EventType.ADDED, old, new)
        return copy.deepcopy(new)

    def _tell(self, resource: Resource, type: EventType, old: Object | None, new: Object | None) -> None:
        for followed, handler in self._followers:
            if followed == resource:
                handler(type, old, new)


class FakeInformer:
    """An `ObjectCache` that is never behind the API server. Its objects are the stored ones."""

    def __init__(self, api: FakeKubernetes, resource: Resource, keep: Callable[[Object], bool]) -> None:
        self._objects = api.objects(resource)
        self._keep = keep
        self._handlers: list[Handler] = []
        self._deletion_handlers: list[Callable[[Object], None]] = []
        api.follow(resource, self._take)

    def add_handler(self, handler: Handler) -> None:
        self._handlers.append(handler)

    def add_deletion_handler(self, handler: Callable[[Object], None]) -> None:
        self._deletion_handlers.append(handler)

    def get(self, key: str) -> Object | None:
        found = self._objects.get(key)
        return found if found and self._keep(found) else None

    def items(self) -> list[Object]:
        return [*filter(self._keep, self._objects.values())]

    def _take(self, type: EventType, old: Object | None, new: Object | None) -> None:
        old, new = (each if each and self._keep(each) else None for each in (old, new))
        if old is None and new is None:
            return
        kind = EventType.DELETED if new is None else type if old else EventType.ADDED
        if new is None and old is not None:
            for deleted in self._deletion_handlers:
                deleted(old)
        for handler in self._handlers:
            handler(kind, old, new)


def merged(target: Any, patch: Any, type: PatchType = PatchType.MERGE) -> Any:
    """JSON merge patch (RFC 7386). STRATEGIC also merges lists, as far as controllers patch any."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    strategic = type is PatchType.STRATEGIC
    for field, value in patch.items():
        if strategic and field == "$deleteFromPrimitiveList/finalizers":
            result["finalizers"] = [each for each in result.get("finalizers") or [] if each not in value]
        elif strategic and field == "finalizers":
            result[field] = list(dict.fromkeys([*(result.get(field) or []), *value]))
        elif strategic and field == "conditions":
            patched = {each["type"] for each in value}
            kept = [each for each in result.get(field) or [] if each["type"] not in patched]
            result[field] = kept + [each for each in value if each.get("$patch") != "delete"]
        elif value is None:
            result.pop(field, None)
        else:
            result[field] = merged(result.get(field), value, type)
    return result


_OF_THE_SERVER = ("uid", "resourceVersion", "deletionTimestamp")
_NOW = "2026-01-01T00:00:00Z"


def _key(resource: Resource, name: str, namespace: str | None) -> str:
    resource.path(namespace, name)  # Raises ValueError where the client does.
    return f"{namespace}/{name}" if namespace else name


def _key_of(resource: Resource, obj: Object) -> str:
    return _key(resource, name(obj), namespace(obj))


def _require_current(present: Object, sent: Object, another_uid: Exception) -> None:
    """Raise unless the UID and the version that the request names, if any, are the object's."""
    mine, theirs = present["metadata"], sent.get("metadata") or {}
    if theirs.get("uid") not in (None, "", mine["uid"]):
        raise another_uid
    if theirs.get("resourceVersion") not in (None, "", mine["resourceVersion"]):
        raise ConflictError(409, "Conflict", f"{mine['name']}: the object has been modified")
