"""How a scenario is run under a fault, on any cloud: what it comes to, and at what price."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import psutil
from botocore.exceptions import BotoCoreError, ClientError

from cloud_controller.cloud import CloudError
from cloud_controller.kube import ApiError
from tests.crash.daemon import Daemon, Json, until
from tests.crash.trial import QUIET, Run, Scenario, difference, prepared

COSTS = ("seconds", "calls to cloud and cluster", "most in one second", "CPU seconds")

SLOW = 180.0
"""Seconds in which even the slowest cloud of these has done everything."""
CALLS_A_SECOND = 15
"""More than any work here needs on the average; a loop that waits for nothing makes hundreds."""
CALLS_AT_ONCE = 120
"""More than any burst here needs: twice what was measured at most."""

SHORT_SILENCE = "import cloud_controller.kube.client as client\nclient.WATCH_SILENCE = 3.0"
"""Seconds instead of minutes until a silent watch is taken to be dead: nobody waits for minutes in a test."""

D = TypeVar("D", bound=Daemon)
R = TypeVar("R", bound=Run)

Fault = Callable[[D], Generator[None, None, None]]
"""Two steps: what it does comes before the work is asked for, between that and its end, and after the end."""


@dataclass(frozen=True)
class Outcome:
    """What the work came to and what it cost."""

    state: Json
    seconds: float
    calls: int
    busiest_second: int
    cpu_seconds: float

    @property
    def costs(self) -> tuple[str, ...]:
        """For people, as the table's columns are."""
        return f"{self.seconds:.1f}", f"{self.calls}", f"{self.busiest_second}", f"{self.cpu_seconds:.1f}"

    def assert_affordable(self, in_peace: Outcome) -> None:
        """Fails where it cost more than the work in peace, and some room for its length."""
        assert self.calls <= in_peace.calls + CALLS_A_SECOND * self.seconds
        assert self.busiest_second <= CALLS_AT_ONCE
        assert self.cpu_seconds <= 1.0 + 0.3 * self.seconds


def work_under(daemon: D, begin: Callable[[], R], work: Scenario[R], fault: Fault[D]) -> Outcome:
    """Do the work under the fault; the cluster is as before afterwards."""
    daemon.start()
    with prepared(daemon, begin(), work) as run:
        pid = daemon.pid
        assert pid is not None
        process = psutil.Process(pid)
        cpu, began = sum(process.cpu_times()[:2]), time.monotonic()
        with closing(fault(daemon)) as steps:
            next(steps)
            work.act(run)
            next(steps)
            try:
                until(lambda: is_done(work, run), f"{work.name} is done", SLOW)
            except AssertionError as error:
                error.add_note(f"there is {run.snapshot()}\n{daemon.log_tail()}")
                raise
            next(steps, None)
        until(lambda: is_done(work, run) and daemon.recorder.quiet_for(QUIET), "it is at rest")
        assert daemon.pid == pid, f"it ended by itself:\n{daemon.log_tail()}"
        seconds = time.monotonic() - began
        calls = daemon.recorder.calls(began)
        a_second = Counter(int(call.at - began) for call in calls)
        return Outcome(run.snapshot(), seconds, len(calls), max(a_second.values()), sum(process.cpu_times()[:2]) - cpu)


def endure(
    daemon: D,
    begin: Callable[[], R],
    work: Scenario[R],
    fault: Fault[D],
    in_peace: Outcome,
    record: Callable[[str, object], None],
) -> None:
    """Do the work under the fault; fails unless it ends as it did in peace, at a bounded price."""
    outcome = work_under(daemon, begin, work, fault)
    for column, value in zip(COSTS, outcome.costs, strict=True):
        record(column, value)
    assert not difference(in_peace.state, outcome.state)
    outcome.assert_affordable(in_peace)


def is_done(work: Scenario[R], run: R) -> bool:
    """Whether the work is done; while nobody can be asked, it is not."""
    try:
        return work.done(run)
    except (ApiError, CloudError, ClientError, BotoCoreError):
        return False


def peace(_: Daemon) -> Generator[None, None, None]:
    """No fault."""
    yield
    yield
