"""How the stateful properties are run: random histories of a world, each on a mycloud of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

if TYPE_CHECKING:
    from tests.cloud_controller.clouds.conftest import MyCloudSite

NewSite = Callable[[], "AbstractContextManager[MyCloudSite]"]
STEPS = 25


def run_histories(world: type[RuleBasedStateMachine], new_site: NewSite, *, share: int) -> None:
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
