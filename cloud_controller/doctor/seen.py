"""What a cluster and its cloud say, read once and only when a check asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, TypeVar, cast

from cloud_controller.cloud import Cloud, CloudError, Instance
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.doctor.selectors import selects
from cloud_controller.fence import read_only
from cloud_controller.kube import (
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    SERVICES,
    ApiError,
    Kube,
    NotFoundError,
    Object,
    Resource,
)
from cloud_controller.plan import Plan
from cloud_controller.planning import Found, PlanSettings, find

GRACE = timedelta(minutes=2)
BETWEEN_LOOKS = 6.0
"""Seconds: longer than the passes of the node-lifecycle controller are apart."""

BETWEEN_RENEWALS = 3.0
"""Seconds: longer than a leader's retry period."""

_ONE_LOOK = 3600.0
"""Seconds for which a look keeps what it knows of the machines: for as long as it takes."""

T = TypeVar("T")


class Unreadable(Exception):
    """Something that a check needs cannot be read; the message says why. The check then counts as not done."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the CCM is: its DaemonSet or Deployment and its Lease, both in `namespace`."""

    namespace: str = "kube-system"
    workload: str = "cloud-controller-manager"
    lease: str = "cloud-controller-manager"


@dataclass(frozen=True, slots=True)
class Daemon:
    """What the daemon is told to do: by its arguments in the cluster or, outside of one, by those of `doctor`."""

    cloud: str
    """The name of the cloud."""
    controllers: tuple[str, ...]
    settings: PlanSettings


@dataclass(frozen=True, slots=True)
class Scrape:
    """How to read metrics. `between`: seconds from one reading to the next; `ca`: a PEM file, None: trust any pod."""

    between: float
    ca: str | None = None
    wait: Callable[[float], object] = time.sleep


class Seen:
    """One look at a cluster. Every method raises `Unreadable` if something cannot be read, each time alike; a file of
    the caller that cannot be read (kubeconfig, cloud config) raises `KubeconfigError` or OSError."""

    def __init__(
        self,
        open_kube: Callable[[], Kube],
        open_cloud: Callable[[], Cloud],
        open_daemon: Callable[[Kube, Cloud | None, Sequence[str] | None], Daemon],
        target: Target,
        *,
        grace: timedelta = GRACE,
        scrape: Scrape | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`open_daemon`: from the cloud, where it can be opened, and the arguments of the daemon's container, where it
        has one in the cluster. `grace`: how long what is new or has just changed may take. `scrape`
        None: metrics are not read."""
        self._open_kube = open_kube
        self._open_cloud = open_cloud
        self._open_daemon = open_daemon
        self.target = target
        self.grace = grace
        self.scrape = scrape
        self.now = now()
        self._pause = pause
        self._read: dict[Any, Any] = {}

    # ------------------------------------------------------------------------------------------------- Kubernetes

    def kube(self) -> Kube:
        """A client that cannot write, of an API server that has answered."""
        return self._answering().fenced(read_only)

    def version(self) -> Mapping[str, str]:
        """The API server's version."""
        return self.once("version", lambda: self._opened_kube().version())

    def failing(self) -> Sequence[str] | None:
        """The API server's own checks (`/readyz`) that fail twice, each with its reason; None: it does not tell us."""
        return self.once("readyz", self._failing)

    def review(self, resource: Resource, review: Object) -> Object:
        """Post a review (`SubjectAccessReview`), which changes nothing."""
        kube = self._answering()
        return self.once(("review", str(review)), lambda: kube.create(resource, review))

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """All objects of this kind."""
        return self.once(("list", resource.plural, namespace), lambda: self.kube().list(resource, namespace).items)

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None if it does not exist."""

        def read() -> Object | None:
            try:
                return self.kube().get(resource, name, namespace)
            except NotFoundError:
                return None

        return self.once(("get", resource.plural, namespace, name), read)

    def raw(self, path: str, **query: str) -> bytes:
        """What a GET of any path returns: a pod's log, or what a pod serves, through the API server."""
        return self.once(("raw", path, tuple(query.items())), lambda: self.kube().raw("GET", path, query=query))

    def nodes(self) -> Sequence[Object]:
        """All nodes."""
        return self.list(NODES)

    def services(self) -> Sequence[Object]:
        """All Services of type LoadBalancer."""
        return [each for each in self.list(SERVICES) if each["spec"].get("type") == "LoadBalancer"]

    def events(self, obj: Object) -> Sequence[Object]:
        """The events about the object that the API server still has, the latest first."""
        about = [each for each in self.list(EVENTS) if each["involvedObject"].get("uid") in _uids(obj)]
        return sorted(about, key=_event_time, reverse=True)

    def lease(self) -> Object | None:
        """The Lease by which the CCM leads."""
        return self.get(LEASES, self.lease_name(), self.target.namespace)

    def lease_name(self) -> str:
        """The name of the Lease that the CCM's container is told to lead by; doctor's own option where it is not."""
        return self.argument("--leader-elect-resource-name", self.target.lease)

    def renewed(self, lease: Object) -> bool:
        """Whether somebody renews the Lease while we look: its times are those of another clock than ours."""

        def read() -> bool:
            self._pause(BETWEEN_RENEWALS)
            now = self.kube().get(LEASES, self.lease_name(), self.target.namespace)
            return bool(now["spec"].get("renewTime") != lease["spec"].get("renewTime"))

        return self.once("renewed", read)

    def workload(self) -> Object | None:
        """The CCM's DaemonSet or Deployment; None if it has none, as where the cloud runs it."""
        target = self.target
        return self.get(DAEMON_SETS, target.workload, target.namespace) or self.get(
            DEPLOYMENTS, target.workload, target.namespace
        )

    def pods(self) -> Sequence[Object]:
        """The CCM's pods."""
        workload = self.workload()
        if workload is None:
            return []
        selector = workload["spec"]["selector"]
        all_pods = self.list(PODS, self.target.namespace)
        return [each for each in all_pods if selects(selector, each["metadata"].get("labels") or {})]

    def running_pods(self) -> Sequence[Object]:
        """The CCM's pods, without those that have ended or are being deleted: others take their place."""
        return [
            each
            for each in self.pods()
            if not each["metadata"].get("deletionTimestamp")
            and each["status"].get("phase") not in ("Failed", "Succeeded")
        ]

    # ------------------------------------------------------------------------------------------ the daemon and plans

    def ours(self) -> bool:
        """Whether the CCM in the cluster is this project's daemon."""
        return "run" in (self.arguments() or ())

    def argument(self, name: str, default: str = "") -> str:
        """The value of one of the CCM's options (`--secure-port`); `default` if its container does not set it."""
        given = dict(each.partition("=")[::2] for each in joined(self.arguments() or ()))
        return given.get(name, default)

    def arguments(self) -> Sequence[str] | None:
        """The arguments of the CCM's container; None if it does not run in the cluster."""
        container = self.container()
        return None if container is None else [*(container.get("command") or ()), *(container.get("args") or ())]

    def container(self) -> Object | None:
        """The CCM's container in its pods' template; None if it does not run in the cluster."""
        workload = self.workload()
        if workload is None:
            return None
        containers = workload["spec"]["template"]["spec"]["containers"]
        # Others beside it have other names.
        named = [each for each in containers if each["name"] == self.target.workload] or containers
        found: Object = named[0]
        return found

    def daemon(self) -> Daemon:
        """What the daemon is told to do."""

        def read() -> Daemon:
            try:
                cloud = self.opened_cloud()
            except Unreadable:
                cloud = None
            return self._open_daemon(self._answering(), cloud, self.arguments())

        return self.once("daemon", read)

    def opened_cloud(self) -> Cloud:
        """The cloud by its cloud config, which cannot be written to and has not been called yet."""

        def read() -> Cloud:
            cloud = self._open_cloud()
            cloud.fence_writes(read_only)
            return cloud

        return self.once("opened cloud", read)

    def cloud(self) -> Cloud:
        """The cloud, once it has answered: with one that does not, every further call would wait for its deadline."""

        self.machines()
        return self.opened_cloud()

    def machines(self) -> Sequence[Instance]:
        """The cluster's machines; the first call of the cloud."""
        return self.once("machines of the cloud", lambda: self.opened_cloud().instances.list())

    def plan(self, controller: str) -> Found | None:
        """What this controller would do now; None if the daemon does not run it.

        Only changes that a second look, some seconds later, still shows: a daemon in the middle of its work makes the
        others meanwhile.
        """
        if controller not in self.daemon().controllers:
            return None

        def read() -> Found:
            found = self._look(controller)
            if not found.plan.changes:
                return found
            self.once("pause", self._wait)
            return _lasting(found, self._look(controller, again=True))

        return self.once(("plan", controller), read)

    def _look(self, controller: str, *, again: bool = False) -> Found:
        def read() -> Found:
            # Controllers share what is known of the machines in one look.
            machines = self.once(
                ("machines", again), lambda: InstanceSnapshot(self.cloud().instances, lifetime=_ONE_LOOK)
            )
            return find(controller, self.kube(), self.cloud(), machines, self.daemon().settings)

        return self.once(("look", controller, again), read)

    def _wait(self) -> None:
        # All first looks before the pause: then one is enough.
        for controller in self.daemon().controllers:
            with suppress(Unreadable):  # The check that needs it says so.
                self._look(controller)
        self._pause(BETWEEN_LOOKS)

    # ------------------------------------------------------------------------------------------------------- reading

    def once(self, what: Any, read: Callable[[], T]) -> T:
        """Read it the first time; afterwards give the same answer, or the same reason why there is none."""
        if what not in self._read:
            try:
                self._read[what] = read()
            except Unreadable as error:
                self._read[what] = error
            except (ApiError, CloudError) as error:
                self._read[what] = _unreadable(error)
        found = self._read[what]
        if isinstance(found, Unreadable):
            raise found
        return cast("T", found)

    def _answering(self) -> Kube:
        self.version()
        # /version needs no etcd; every other read would wait for its timeout.
        if without := without_etcd(self.failing() or ()):
            raise Unreadable(f"the API server is not ready: {without}")
        return self._opened_kube()

    def _failing(self) -> Sequence[str] | None:
        self.version()
        if not (first := self._failing_now()):
            return first
        # One slow answer of etcd is enough for one of the two.
        self._pause(BETWEEN_RENEWALS)
        before = {_name(each) for each in first}
        return [each for each in self._failing_now() or () if _name(each) in before]

    def _failing_now(self) -> Sequence[str] | None:
        try:
            self._opened_kube().raw("GET", "/readyz", query={"verbose": ""})
        except ApiError as error:
            if not error.status:
                raise
            if error.status < 500:
                return None
            lines = error.body.decode(errors="replace").splitlines()
            return [each.removeprefix("[-]") for each in lines if each.startswith("[-]")] or [str(error)]
        return ()

    def _opened_kube(self) -> Kube:
        return self.once("kube", self._open_kube)


def joined(words: Sequence[str]) -> Iterator[str]:
    """The options of a command line, each with its value: `--v=2` also for `--v 2`."""
    for word, following in pairwise([*words, "-"]):
        if word.startswith("--"):
            yield word if "=" in word or not following or following.startswith("-") else f"{word}={following}"


def without_etcd(failing: Sequence[str]) -> str | None:
    """The check (of `Seen.failing`) that says that the API server does not reach etcd; None: it does."""
    return next((each for each in failing if _name(each) == "etcd"), None)


def _name(failing: str) -> str:
    return failing.partition(" ")[0]


def _lasting(first: Found, second: Found) -> Found:
    """The second, without changes that the first does not have."""
    known = {str(action.to_json()) for action in first.plan}
    lasting = (action for action in second.plan if not action.pending or str(action.to_json()) in known)
    return replace(second, plan=Plan.of(lasting))


def _unreadable(error: Exception) -> Unreadable:
    unreadable = Unreadable(str(error))
    unreadable.__cause__ = error
    return unreadable


def _uids(obj: Object) -> tuple[str, ...]:
    # The kubelet, and older node controllers, name a node as the UID of their events' node.
    return obj["metadata"].get("uid", ""), obj["metadata"]["name"] if obj.get("kind") == "Node" else ""


def _event_time(event: Object) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")
