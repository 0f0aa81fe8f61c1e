"""Two managers, one lease: there are never two that write, and the second is there as soon as it may be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from cloud_controller import rbac
from cloud_controller.kube import LEASES, NotFoundError
from tests.crash.environment import Environment, Manager, until
from tests.crash.scenarios import Run, port
from tests.crash.trial import QUIET, Scenario, prepared

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(300)]

DURATION, DEADLINE, RETRY = 15.0, 8.0, 1.0
"""A leader must not lose its lease because the computer was busy for some seconds."""
FLAGS = (
    f"--leader-elect-lease-duration={DURATION:g}s",
    f"--leader-elect-renew-deadline={DEADLINE:g}s",
    f"--leader-elect-retry-period={RETRY:g}s",
    "--node-monitor-period=500ms",
    "--concurrent-service-syncs=1",
)
SLACK = 10.0
"""Seconds that a busy computer may take beyond what the lease says; less than a second lease."""
SERVICES = 12
SECONDS_A_WRITE = 1.5
WRITES = "POST /v1/load_balancers/*/backend_sets/*"

MANY: Scenario[Run] = Scenario(
    "many load balancers",
    lambda run: [run.service(port(9000 + number, 31900 + number)) for number in range(SERVICES)],
    lambda run: all(run.serves(9000 + number, of=number) for number in range(SERVICES)),
    lambda run: run.node(),
    lambda run: run.initialised(run.machines[0]) and run.members_are({0}),
)
"""A node that comes is a write of the cloud for each of them: work that needs no API server, for more than DEADLINE."""


class AtWork(NamedTuple):
    """The manager that leads, the one that waits, the run of the scenario, and who holds the lease."""

    first: Manager
    second: Manager
    run: Run
    leader: str


@pytest.fixture
def pair(environment: Environment) -> Iterator[tuple[Manager, Manager]]:
    """The one that leads, and the one that waits."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(environment.manager(name, *FLAGS)) for name in ("first", "second"))
        _forget_lease(environment)
        first.start()
        until(lambda: _holder(environment), "the first leads")
        second.start()
        until(lambda: "waiting for lease" in second.log_tail(), "the second waits")
        yield first, second
    environment.cloud.delete_path("admin/faults")


@pytest.fixture
def at_work(environment: Environment, pair: tuple[Manager, Manager]) -> Iterator[AtWork]:
    """The first is in the middle of work whose every write is slow."""
    first, second = pair
    with prepared(first, Run(environment), MANY) as run:
        leader = _holder(environment)
        _slow_writes(environment)
        MANY.act(run)
        until(lambda: _members_written(first), "the leader is at work")
        yield AtWork(first, second, run, leader)


def test_a_leader_that_is_killed_is_followed_within_lease_and_retry(environment: Environment, at_work: AtWork) -> None:
    first, second, run, leader = at_work

    first.kill()
    killed = time.monotonic()
    until(lambda: _holder(environment) not in ("", leader), "the second leads")
    taken_over = time.monotonic() - killed

    _assert_the_second_ends_the_work(run, first, second)
    assert taken_over <= DURATION + RETRY * 1.2 + SLACK


def test_a_leader_that_loses_the_api_server_stops_before_another_begins(
    environment: Environment, at_work: AtWork
) -> None:
    first, second, run, leader = at_work

    first.kubernetes.partition()
    cut_off = time.monotonic()
    until(lambda: _holder(environment) not in ("", leader), "the second leads")
    taken_over = time.monotonic() - cut_off

    until(lambda: first.exit_code is not None, "the first has ended")
    assert first.exit_code == 1
    assert first.recorder.writes(cut_off), "it had no work left when it was cut off: nothing was tested"
    _assert_the_second_ends_the_work(run, first, second)
    assert taken_over <= DURATION + RETRY * 1.2 + SLACK


def test_a_leader_that_wakes_when_another_leads_writes_nothing(environment: Environment, at_work: AtWork) -> None:
    first, second, run, leader = at_work
    until(lambda: run.initialised(run.machines[0]), "only the slow writes are left to do")

    # Pause it while it waits for the answer to a write: a write that it was just sending would go out when it wakes.
    # It never gets that answer, so the first thing it does when it wakes is to send the write again.
    first.recorder.arm(1, first.pause)
    until(lambda: first.recorder.sprung, "the first is paused")
    assert "/backends:batch_register" in str(first.recorder.sprung), "it may have been about to make another write"
    until(lambda: _holder(environment) not in ("", leader), "the second leads")
    until(lambda: second.recorder.writes(), "the second writes")
    first.resume()

    until(lambda: first.exit_code is not None, "the first has ended")
    assert first.exit_code == 1
    _assert_the_second_ends_the_work(run, first, second)


def _assert_the_second_ends_the_work(run: Run, first: Manager, second: Manager) -> None:
    until(lambda: second.recorder.writes(), "the second writes")
    run.environment.cloud.delete_path("admin/faults")
    until(lambda: MANY.done(run) and second.recorder.quiet_for(QUIET), "the work is done")
    last, begun = first.recorder.writes()[-1], second.recorder.writes()[0]
    assert last.at < begun.at, f"two wrote at the same time: {last} came after {begun}"


def _slow_writes(environment: Environment) -> None:
    """Each member takes the cloud so long that the leader is at work when it is struck."""
    fault = {"operation": WRITES, "kind": "latency", "seconds": SECONDS_A_WRITE, "count": None}
    environment.cloud.post("admin/faults", fault)


def _members_written(manager: Manager) -> bool:
    return any("/backends:batch_register" in call.path for call in manager.recorder.writes())


def _holder(environment: Environment) -> str:
    try:
        lease = environment.kube.get(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)
    except NotFoundError:
        return ""
    return str(lease["spec"].get("holderIdentity") or "")


def _forget_lease(environment: Environment) -> None:
    try:
        environment.kube.delete(LEASES, rbac.LEASE_NAME, rbac.LEASE_NAMESPACE)
    except NotFoundError:
        return
