"""A cloud in memory for the controllers, and a real API server for what only one can show."""

from __future__ import annotations

import logging
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from cloud_controller.cloud import (
    CallObserver,
    Conflict,
    Fence,
    Instance,
    InstanceRef,
    InstanceState,
    NodeAddress,
    NotFound,
    QuotaExceeded,
    Route,
    RouteFailure,
)
from cloud_controller.kube import Kube
from local.control_plane.control_plane import ControlPlane
from tests.control_planes import running_control_plane


@dataclass
class FakeCloud:
    """Machines by node name and a route table; `error` is raised by every call while it is set."""

    machines: dict[str, Instance] = field(default_factory=dict)
    table: list[Route] = field(default_factory=list)
    error: Exception | None = None
    describes: list[int] = field(default_factory=list)
    lists: int = 0
    route_lists: int = 0
    route_writes: int = 0
    quota: int | None = None
    marks_routes: bool = True
    refuse_routes_to: set[str] = field(default_factory=set)

    provider_name = "fake"
    cluster_id = "c-1"
    load_balancer_classes: frozenset[str] = frozenset()
    load_balancers = None
    volumes = None

    @property
    def instances(self) -> FakeCloud:
        return self

    @property
    def routes(self) -> FakeRoutes:
        return FakeRoutes(self)

    def machine(self, name: str, **more: object) -> Instance:
        self.machines[name] = replace(make_instance(name), **more)  # type: ignore[arg-type]
        return self.machines[name]

    def list(self) -> Sequence[Instance]:
        self.fail_if_told()
        self.lists += 1
        return [*self.machines.values()]

    def describe(self, refs: Sequence[InstanceRef]) -> Mapping[InstanceRef, Instance | None]:
        self.fail_if_told()
        self.describes.append(len(refs))
        # Of a copy: tests change them while a daemon asks.
        living = [each for each in [*self.machines.values()] if each.state is not InstanceState.TERMINATED]
        by_provider_id = {machine.provider_id: machine for machine in living}
        by_name = {name: machine for machine in living for name in machine.node_names}
        return {
            ref: by_provider_id.get(ref.provider_id) if ref.provider_id else by_name.get(ref.node_name) for ref in refs
        }

    def fail_if_told(self) -> None:
        if self.error is not None:
            raise self.error

    def check_access(self, controllers: Collection[str], *, read_only: bool = False) -> None:  # noqa: ARG002
        self.fail_if_told()

    def observe_calls(self, observer: CallObserver) -> None:
        self.observer = observer

    def fence_writes(self, fence: Fence) -> None:
        self.fence = fence

    def cluster_access(self) -> str:
        raise NotFound("this cloud runs no control plane")


class FakeRoutes:
    """The cloud's route table."""

    def __init__(self, cloud: FakeCloud) -> None:
        self._cloud = cloud

    def list(self) -> Sequence[Route]:
        self._cloud.fail_if_told()
        self._cloud.route_lists += 1
        return [*self._cloud.table]

    def quota(self) -> int | None:
        self._cloud.fail_if_told()
        return self._cloud.quota

    def create(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        self._cloud.fail_if_told()
        failures: list[RouteFailure] = []
        self._cloud.route_writes += 1
        present = {route.destination_cidr: route.target_instance for route in self._cloud.table}
        for route in routes:
            if route.target_instance in self._cloud.refuse_routes_to:
                failures.append(RouteFailure(route, Conflict(f"{route.target_instance} takes no routes")))
            elif self._cloud.quota is not None and len(self._cloud.table) >= self._cloud.quota:
                failures.append(RouteFailure(route, QuotaExceeded(f"{self._cloud.quota} routes are all")))
            elif route.destination_cidr in present:
                if present[route.destination_cidr] != route.target_instance:
                    failures.append(RouteFailure(route, Conflict(f"{route.destination_cidr} leads elsewhere")))
            else:
                self._cloud.table.append(route if self._cloud.marks_routes else replace(route, owned=None))
        return failures

    def delete(self, routes: Sequence[Route]) -> Sequence[RouteFailure]:
        self._cloud.fail_if_told()
        gone = {route.destination_cidr for route in routes}
        self._cloud.table[:] = [route for route in self._cloud.table if route.destination_cidr not in gone]
        return []


def make_instance(name: str) -> Instance:
    return Instance(
        id=f"i-{name}",
        provider_id=f"fake://zone-a/i-{name}",
        name=name,
        type="small",
        zone="zone-a",
        region="local",
        state=InstanceState.RUNNING,
        addresses=(NodeAddress("InternalIP", "10.9.0.1"), NodeAddress("Hostname", name)),
    )


@pytest.fixture(autouse=True)
def _process() -> Iterator[None]:
    """Commands set up logging and signals for their process; the next test's is its own again."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for number, handler in signals.items():
        signal.signal(number, handler)


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud without machines."""
    return FakeCloud()


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that is ready; tests clean up what they make."""
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(scope="session")
def kube(control_plane: ControlPlane) -> Kube:
    """A client with all rights."""
    return Kube.from_kubeconfig(control_plane.kubeconfig("admin", ["system:masters"], timedelta(hours=1)))
