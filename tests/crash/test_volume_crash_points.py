"""As `test_crash_points`, for claims and their volumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cloud_controller.kube import NODES, STORAGE_CLASSES
from tests.crash.daemon import PATIENCE
from tests.crash.environment import Environment, Json, Manager
from tests.crash.trial import Scenario, survive
from tests.crash.volume_scenarios import CLASS, VOLUME_SCENARIOS, VolumeRun, machine, storage_class
from tests.sampling import mostly_nightly

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


@pytest.mark.parametrize("scenario", mostly_nightly(VOLUME_SCENARIOS, always=2), ids=lambda scenario: scenario.name)
def test_no_volume_is_lost_or_left_whatever_call_was_the_last_and_whichever_answer_is_lost(
    scenario: Scenario[VolumeRun],
    volume_manager: Manager,
    worker: Json,
    record_property: Callable[[str, object], None],
) -> None:
    survive(volume_manager, lambda: VolumeRun(volume_manager, worker), scenario, record_property)
