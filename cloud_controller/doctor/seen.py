"""What a cluster and its cloud say, read once and only when a check asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from cloud_controller.cloud import Cloud, CloudError
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.doctor.findings import Unreadable
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
from cloud_controller.planning import Found, PlanSettings, find

GRACE = timedelta(minutes=2)

T = TypeVar("T")


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
    """The name of the cloud; empty: unknown, as for other CCMs."""
    controllers: tuple[str, ...]
    settings: PlanSettings


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
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`open_daemon`: from the cloud, where it can be opened, and the arguments of the daemon's container, where it
        has one in the cluster. `grace`: how long what is new or has just changed may take."""
        self._open_kube = open_kube
        self._open_cloud = open_cloud
        self._open_daemon = open_daemon
        self.target = target
        self.grace = grace
        self.now = now()
        self._read: dict[Any, Any] = {}

    # ------------------------------------------------------------------------------------------------- Kubernetes

    def kube(self) -> Kube:
        """A client that cannot write, of an API server that has answered."""
        return self.once("kube", self._answering_kube).fenced(read_only)

    def version(self) -> Mapping[str, str]:
        """The API server's version."""
        return self.once("version", lambda: self.kube().version())

    def review(self, resource: Resource, review: Object) -> Object:
        """Post a review (`SubjectAccessReview`), which changes nothing."""
        kube = self.once("kube", self._answering_kube)
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
        return self.get(LEASES, self.target.lease, self.target.namespace)

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
        wanted = workload["spec"]["selector"].get("matchLabels", {}).items()
        all_pods = self.list(PODS, self.target.namespace)
        return [each for each in all_pods if wanted <= (each["metadata"].get("labels") or {}).items()]

    # ------------------------------------------------------------------------------------------ the daemon and plans

    def arguments(self) -> Sequence[str] | None:
        """The arguments of the CCM's container; None if it does not run in the cluster."""
        workload = self.workload()
        if workload is None:
            return None
        container = workload["spec"]["template"]["spec"]["containers"][0]
        return [*container.get("command", ()), *container.get("args", ())]

    def daemon(self) -> Daemon:
        """What the daemon is told to do."""

        def read() -> Daemon:
            try:
                cloud = self.cloud()
            except Unreadable:
                cloud = None
            return self._open_daemon(self.once("kube", self._answering_kube), cloud, self.arguments())

        return self.once("daemon", read)

    def cloud(self) -> Cloud:
        """The cloud, which cannot be written to."""

        def read() -> Cloud:
            cloud = self._open_cloud()
            cloud.fence_writes(read_only)
            return cloud

        return self.once("cloud", read)

    def machines(self) -> InstanceSnapshot:
        """The cloud's machines, each read once."""
        return self.once("machines", lambda: InstanceSnapshot(self.cloud().instances, lifetime=3600.0))

    def plan(self, controller: str) -> Found | None:
        """What this controller would do now; None if the daemon does not run it."""
        if controller not in self.daemon().controllers:
            return None

        def read() -> Found:
            return find(controller, self.kube(), self.cloud(), self.machines(), self.daemon().settings)

        return self.once(("plan", controller), read)

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

    def _answering_kube(self) -> Kube:
        kube = self._open_kube()
        kube.version()
        return kube


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
