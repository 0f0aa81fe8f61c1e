"""Watches an object until it is ready or gone; meanwhile reports what it waits for and what is wrong."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from cloud_controller.kube import (
    ENDPOINT_SLICES,
    EVENTS,
    PODS,
    ApiError,
    EventType,
    GoneError,
    Kube,
    NotFoundError,
    Object,
    Resource,
    TooManyRequestsError,
    UnreachableError,
)
from local.plugins.kubernetes.conditions import Judge, Progress, judge_endpoints, judge_of, needs_endpoints
from local.plugins.provider import Report

LOOK_SECONDS = 5.0
"""How long to wait for a change before looking for causes: pods and events."""
RETRY_SECONDS = 1.0
"""Between two attempts to reach an API server that was there a moment ago."""
SERVED_SECONDS = 0.2
"""Between two checks whether a new kind is served."""
MOST_REASONS = 5
_FOREGROUND = "foregroundDeletion"
"""The garbage collector's own finalizer, while it deletes what the object owns."""
_FINE_TO_WAIT_FOR = ("ContainerCreating", "PodInitializing")


class NotReadyError(Exception):
    """The object did not become ready or gone in time, or never will; the message says what is wrong."""


class Waiter:
    """Waits for objects of one API server. `stop` ends all waiting (NotReadyError)."""

    def __init__(self, kube: Kube, stop: threading.Event) -> None:
        self._kube = kube
        self._stop = stop

    def until_ready(
        self, resource: Resource, obj: Object, deadline: float, report: Report, declared: Judge | None = None
    ) -> Object:
        """The object when it is ready: by its kind's rules, or as `declared` for this one alone.

        `deadline` is of the monotonic clock. Raises NotReadyError, ApiError.
        """
        judge = declared or judge_of(resource.api_version, resource.kind)
        if judge is None or (declared is None and self._binds_later(resource, obj)):
            return obj
        namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
        ready = self._until(
            resource,
            namespace,
            f"metadata.name={name}",
            "",
            lambda items: judge(items[0]) if items else Progress(False, "the object is gone", failed=True),
            lambda: self._hindrances(obj),
            deadline,
            report,
        )[0]
        if declared is not None:
            return ready
        if resource.kind == "Service" and not resource.group and needs_endpoints(ready):
            self._until(
                ENDPOINT_SLICES,
                namespace,
                "",
                f"kubernetes.io/service-name={name}",
                judge_endpoints,
                lambda: self._hindrances(obj),
                deadline,
                report,
            )
            return self._kube.get(resource, name, namespace)
        if resource.kind == "CustomResourceDefinition":
            self._until_served(ready, deadline)
        return ready

    def _until_served(self, definition: Object, deadline: float) -> None:
        """An established kind is announced shortly before it is served: until then its path is not found.

        No object shows when that is over, so this polls. Raises NotReadyError.
        """
        spec = definition["spec"]
        for version in spec["versions"]:
            path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
            while version["served"] and not self._is_found(path):
                if time.monotonic() >= deadline or self._stop.wait(SERVED_SECONDS):
                    raise NotReadyError(f"established, but {path} is not served yet")

    def _is_found(self, path: str) -> bool:
        try:
            self._kube.raw("GET", path, query={"limit": "1"})
        except NotFoundError:
            return False
        return True

    def until_gone(self, resource: Resource, obj: Object, deadline: float, report: Report) -> None:
        """Return when the object (this one, by its UID) is gone. Raises NotReadyError naming what holds it."""
        uid = obj["metadata"].get("uid")
        namespace, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]

        def judge(items: list[Object]) -> Progress:
            left = [item for item in items if item["metadata"].get("uid") == uid]
            return Progress(False, _held_by(left[0])) if left else Progress(True)

        self._until(
            resource, namespace, f"metadata.name={name}", "", judge, lambda: self._hindrances(obj), deadline, report
        )

    def _until(
        self,
        resource: Resource,
        namespace: str | None,
        field_selector: str,
        label_selector: str,
        judge: Callable[[list[Object]], Progress],
        hindrances: Callable[[], list[str]],
        deadline: float,
        report: Report,
    ) -> list[Object]:
        said = ""
        for items, quiet in self._states(resource, namespace, field_selector, label_selector, deadline):
            progress = judge(items)
            if progress.ready:
                return items
            reasons = hindrances() if quiet or progress.failed else []
            text = "; ".join([progress.message, *reasons])
            if progress.failed or self._stop.is_set() or time.monotonic() >= deadline:
                if not reasons:
                    text = "; ".join([progress.message, *hindrances()])
                raise NotReadyError(f"interrupted while waiting: {text}" if self._stop.is_set() else text)
            if text != said:
                report(text)
                said = text
        raise AssertionError("the states are endless")

    def _states(
        self, resource: Resource, namespace: str | None, field_selector: str, label_selector: str, deadline: float
    ) -> Iterator[tuple[list[Object], bool]]:
        """The selected objects after each change; the flag: nothing changed for a while. The first comes at once."""
        selectors: dict[str, Any] = {"field_selector": field_selector, "label_selector": label_selector}
        quiet = False
        while True:
            try:
                listed = self._kube.list(resource, namespace, **selectors)
                items = {item["metadata"]["uid"]: item for item in listed.items}
                yield list(items.values()), quiet
                seconds = max(0.0, min(LOOK_SECONDS, deadline - time.monotonic()))
                version = listed.resource_version
                quiet = True
                with _Watching(self._kube, resource, namespace, version, selectors, seconds, self._stop) as events:
                    for event in events:
                        if event.type is EventType.BOOKMARK:
                            continue
                        quiet = False
                        items[event.object["metadata"]["uid"]] = event.object
                        if event.type is EventType.DELETED:
                            del items[event.object["metadata"]["uid"]]
                        yield list(items.values()), False
            except ApiError as error:
                if not _passes(error) or time.monotonic() >= deadline or self._stop.wait(RETRY_SECONDS):
                    raise

    def _binds_later(self, resource: Resource, obj: Object) -> bool:
        """Whether it is a volume claim that stays pending until a pod uses it, so that waiting would be in vain."""
        name = obj.get("spec", {}).get("storageClassName")
        if resource.kind != "PersistentVolumeClaim" or resource.group or not name:
            return False
        try:
            storage_class = self._kube.get(self._kube.resource("storage.k8s.io/v1", "StorageClass"), name)
        except NotFoundError:
            return False  # The claim's events then say what is missing.
        return bool(storage_class.get("volumeBindingMode") == "WaitForFirstConsumer")

    def _hindrances(self, obj: Object) -> list[str]:
        """What pods and events report about why the object is not ready; empty if they cannot be read."""
        try:
            return [*self._pod_reasons(obj), *self._warnings(obj)][:MOST_REASONS]
        except ApiError as error:
            return [f"its pods and events cannot be read: {error.message}"]

    def _pod_reasons(self, obj: Object) -> list[str]:
        selector = obj.get("spec", {}).get("selector") or {}
        labels = selector if obj["kind"] == "Service" else selector.get("matchLabels", {})
        if not labels or not isinstance(labels, dict):
            return []
        label_selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        pods = self._kube.list(PODS, obj["metadata"]["namespace"], label_selector=label_selector).items
        return list(dict.fromkeys(reason for pod in pods for reason in pod_problems(pod)))

    def _warnings(self, obj: Object) -> list[str]:
        namespace = obj["metadata"].get("namespace", "default")
        selector = f"involvedObject.uid={obj['metadata'].get('uid', '')},type=Warning"
        events = self._kube.list(EVENTS, namespace, field_selector=selector).items
        events.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
        texts = [f"{event.get('reason', 'Warning')}: {event.get('message', '')}" for event in reversed(events)]
        return list(dict.fromkeys(texts))


class _Watching:
    """A watch that closes after a number of seconds, or when all waits end."""

    def __init__(
        self,
        kube: Kube,
        resource: Resource,
        namespace: str | None,
        version: str,
        selectors: dict[str, str],
        seconds: float,
        stop: threading.Event,
    ) -> None:
        self._watch = kube.watch(resource, namespace, resource_version=version, stop=stop, **selectors)
        self._timer = threading.Timer(seconds, self._watch.close)
        self._timer.daemon = True

    def __enter__(self) -> Any:
        self._timer.start()
        return self._watch

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._watch.close()
        # A closed watch returns its connection once it is read to its end, which comes at once.
        collections.deque(self._watch, maxlen=0)


def _passes(error: ApiError) -> bool:
    """Whether to list again: the API server restarts, is overloaded, or compacted its history."""
    return isinstance(error, UnreachableError | GoneError | TooManyRequestsError) or error.status >= 500


def pod_problems(pod: Object) -> list[str]:
    """What prevents a pod from being ready, as its containers and conditions report it."""
    status = pod.get("status", {})
    problems = []
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = container.get("state", {}).get("waiting", {})
        ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
        if waiting.get("reason") and waiting["reason"] not in _FINE_TO_WAIT_FOR:
            problems.append(_problem(container["name"], waiting["reason"], waiting.get("message")))
        elif ended.get("exitCode"):
            problems.append(_problem(container["name"], f"exited with {ended['exitCode']}", ended.get("message")))
    problems += [
        _problem("not scheduled", str(condition.get("reason", "")), condition.get("message"))
        for condition in status.get("conditions") or []
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
    ]
    return [f"pod {pod['metadata']['name']}: {problem}" for problem in problems]


def _problem(subject: str, reason: str, message: str | None) -> str:
    return f"{subject}: {reason}" + (f" ({message})" if message else "")


def _held_by(obj: Object) -> str:
    finalizers = obj["metadata"].get("finalizers") or []
    if not obj["metadata"].get("deletionTimestamp"):
        return "it still exists"
    if obj["kind"] == "Namespace":
        left = [
            str(condition.get("message"))
            for condition in obj.get("status", {}).get("conditions") or []
            if condition.get("status") == "True" and condition.get("message")
        ]
        return "; ".join(["the namespace is being emptied", *left])
    if finalizers in ([], [_FOREGROUND]):
        return "it is being deleted"
    return f"finalizers hold it: {', '.join(finalizers)}"
