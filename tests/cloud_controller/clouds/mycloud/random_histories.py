"""Random histories of a world with a mycloud of its own, in which calls fail and the process dies at any write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.mycloud.cloud import MyCloud
from tests.clock import Clock
from tests.cloud_controller.clouds.mycloud.kubernetes_in_memory import ApiServer, WritesLeft

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

NewSite = Callable[[], "AbstractContextManager[MyCloudSite]"]
STEPS = 25

last_writes = st.one_of(st.none(), st.integers(1, 8))
"""After which write the process dies."""
kinds_of_faults = st.sampled_from(["throttle", "drop_answer", "error"])
numbers_of_faults = st.integers(1, 8)


class History(RuleBasedStateMachine):
    """A site, an API server, and what goes wrong between a process and both."""

    new_site: ClassVar[NewSite]

    def __init__(self) -> None:
        super().__init__()
        self._leave = type(self).new_site()
        self.site = self._leave.__enter__()
        self.clock, self.writes_left = Clock(), WritesLeft()
        self.api = ApiServer(self.writes_left)
        self.faults: list[tuple[str, str, int]] = []
        """Of the calls that the process makes next: operation, kind, count."""

    def teardown(self) -> None:
        try:
            self.end()
        finally:
            self._leave.__exit__(None, None, None)

    def end(self) -> None:
        """The last moment of rest, unless the process never began."""
        raise NotImplementedError

    @rule(count=st.integers(1, 3))
    def the_api_server_refuses_writes(self, count: int) -> None:
        self.api.refusals = count

    def new_cloud(self) -> MyCloud:
        """The cloud of a new process, which dies when no writes are left to it."""
        self.api.informers.clear()
        cloud = self.site.cloud
        cloud._client._sleep = self.clock.sleep

        def observe(operation: str, _: float, error: CloudError | None) -> None:
            if error is None and not operation.startswith("GET"):
                self.writes_left.written()

        cloud.observe_calls(observe)
        return cloud

    @contextmanager
    def faulty(self) -> Iterator[None]:
        """The process works, and its next calls fail; the other hands of a test have their own luck."""
        for operation, kind, count in self.faults:
            self.site.fault(operation, kind, count, retry_after=20 if kind == "throttle" else 0)
        self.faults.clear()
        try:
            yield
        finally:
            self.site.clear_faults()


def run_histories(world: type[History], new_site: NewSite, *, share: int) -> None:
    """One in `share` of the profile's examples; `world` makes its mycloud with its attribute `new_site`."""
    attributes: dict[str, Any] = {"new_site": staticmethod(new_site)}
    run_state_machine_as_test(
        type(world.__name__, (world,), attributes),
        settings=settings(
            max_examples=settings().max_examples // share,
            stateful_step_count=STEPS,
            suppress_health_check=[*HealthCheck],
        ),
    )
