"""As `test_crash_points`, for claims and their volumes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import get_args

import pytest

from cloud_controller.kube import NODES, STORAGE_CLASSES
from tests.crash.daemon import PATIENCE
from tests.crash.environment import Environment, Json, Manager, until
from tests.crash.trial import COLUMNS, QUIET, QUIET_AFTER_LOSS, Blow, points
from tests.crash.volume_scenarios import (
    CLASS,
    VOLUME_SCENARIOS,
    VolumeRun,
    VolumeScenario,
    machine,
    storage_class,
)
from tests.sampling import EVERY_CALL, mostly_nightly

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def volume_manager(environment: Environment) -> Iterator[Manager]:
    """A manager that runs nothing but volumes."""
    with environment.manager("volumes", "--leader-elect=false", "--controllers=volume") as made:
        yield made


@pytest.fixture(scope="module")
def worker(environment: Environment) -> Iterator[Json]:
    """A machine that can have volumes."""
    storage_class(environment)
    made = machine(environment)
    yield made
    environment.cloud.delete("machines", made["id"])
    environment.cloud.wait_for_state("machines", made["id"], ["terminated"], PATIENCE)
    environment.kube.delete(NODES, made["name"])
    environment.kube.delete(STORAGE_CLASSES, CLASS)


@contextlib.contextmanager
def prepared(manager: Manager, worker: Json, scenario: VolumeScenario) -> Iterator[VolumeRun]:
    """The scenario's state at rest; afterwards nothing is left."""
    run = VolumeRun(manager.environment, worker)
    try:
        if manager.pid is None:
            manager.start()
        for change, answered in scenario.prepare:
            change(run)
            until(lambda answered=answered: answered(run), f"{scenario.name}: prepared")  # type: ignore[misc]
        until(lambda: manager.recorder.quiet_for(QUIET), f"{scenario.name}: at rest")
        yield run
    finally:
        manager.kill()
        manager.recorder.arm()
        run.clean()


def undisturbed(manager: Manager, worker: Json, scenario: VolumeScenario) -> tuple[tuple[str, ...], str]:
    """The calls that change something in peace, and where they lead."""
    with prepared(manager, worker, scenario) as run:
        manager.recorder.arm()
        since = time.monotonic()
        scenario.act(run)
        until(lambda: scenario.done(run) and manager.has_come_to_rest(QUIET), f"{scenario.name}: done")
        return tuple(map(str, manager.recorder.writes(since))), run.snapshot()


def disturbed(
    manager: Manager, worker: Json, scenario: VolumeScenario, state: str, blow: Blow, number: int, quiet: float
) -> None:
    """Fails unless the blow falls at this call, and it ends as it did in peace."""
    recorder = manager.recorder
    with prepared(manager, worker, scenario) as run:
        recorder.arm(number, manager.kill if blow == "kill" else lambda: None)
        scenario.act(run)
        until(lambda: recorder.sprung, f"call {number} is made")
        at_rest = recorder.quiet_for
        if blow == "kill":
            assert manager.pid is None, "the manager outlived its kill"
            manager.start()
            at_rest = manager.has_come_to_rest
        until(
            lambda: at_rest(quiet) and scenario.done(run) and run.snapshot() == state,
            f"the end of the undisturbed run, after {blow} at {recorder.sprung}",
        )


@pytest.mark.parametrize("scenario", mostly_nightly(VOLUME_SCENARIOS), ids=lambda scenario: scenario.name)
def test_no_volume_is_lost_or_left_whatever_call_was_the_last_and_whichever_answer_is_lost(
    scenario: VolumeScenario, volume_manager: Manager, worker: Json, record_property: Callable[[str, object], None]
) -> None:
    calls, state = undisturbed(volume_manager, worker, scenario)
    assert calls

    failures: list[str] = []
    survived = [f"{len(calls)}"]
    for blow in get_args(Blow):
        chosen = [*points(scenario.name, blow, len(calls))]
        before = len(failures)
        quiet = QUIET_AFTER_LOSS if EVERY_CALL and blow == "lost answer" else QUIET
        for number in chosen:
            try:
                disturbed(volume_manager, worker, scenario, state, blow, number, quiet)
            except AssertionError as error:
                failures.append(f"{blow} at call {number}: {error}")
        survived.append(f"{len(chosen) - (len(failures) - before)}/{len(chosen)}" if chosen else "-")
    for column, value in zip(COLUMNS, survived, strict=True):
        record_property(column, value)

    assert not failures, "\n\n".join([*failures, "calls in peace:", *calls, volume_manager.log_tail()])
