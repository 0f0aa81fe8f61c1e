"""The service controller at work with a real API server, and how its tests wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.controller import ServiceController, ServiceOptions
from cloud_controller.events import EventRecorder
from cloud_controller.kube import ENDPOINT_SLICES, NODES, PODS, SERVICES, Informer, Kube
from cloud_controller.load_balancers.readiness_gates import ReadinessGates, is_held
from cloud_controller.metrics import Metrics
from tests.cloud_controller.guard import guard

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

T = TypeVar("T")


class Running:
    """A controller at work, which can be stopped and started as a process would be."""

    def __init__(
        self,
        kube: Kube,
        site: MyCloudSite,
        workers: int = 2,
        gates: ReadinessGates | None = None,
        address_changes: AddressChanges = AddressChanges.ALLOW,
    ) -> None:
        self._kube = kube
        self._options = ServiceOptions(workers=workers, gates=gates, address_changes=address_changes)
        self._gates = gates
        self._site = site

    def __enter__(self) -> Running:
        self._stop = threading.Event()
        self._informers = [Informer(self._kube, kind) for kind in (SERVICES, NODES, ENDPOINT_SLICES)]
        pods: Informer | None = None
        if self._gates is not None:
            pods = Informer(self._kube, PODS, keep=partial(is_held, gates=self._gates))
            self._informers.append(pods)
        self.cloud = self._site.cloud
        self._events = EventRecorder(self._kube, "service-controller")
        self.controller = ServiceController(
            self._kube,
            self.cloud,
            self._informers[0],
            self._informers[1],
            self._informers[2],
            self._events,
            Metrics(),
            self._options,
            guard(self._kube),
            InstanceSnapshot(self.cloud.instances),
            None,
            pods,
        )
        for informer in self._informers:
            informer.start()
        for informer in self._informers:
            informer.wait_synced(60)
        self.controller.start(self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self.controller.join(60)
        for informer in self._informers:
            informer.stop()
        # Each is a write of its own, and there may be hundreds.
        assert self._events.close(60)


def eventually(site: MyCloudSite, what: Callable[[], T], seconds: float = 60) -> T:
    """The first true value, with mycloud's data plane at work meanwhile."""
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, f"not in time; last: {value!r}"
        site.settle()
        time.sleep(0.02)
    return value
