"""Whatever call was the manager's last, and whichever answer was lost: the end is that of an undisturbed run.

All calls with CRASH_POINTS=all (`make crash-test`), else one of each kind a scenario.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import get_args

import pytest

from tests.crash.conftest import COLUMNS
from tests.crash.crash_run import QUIET, QUIET_AFTER_LOSS, Blow, disturbed, points, undisturbed
from tests.crash.environment import Manager
from tests.crash.scenarios import SCENARIOS, Scenario

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(1800)]

EVERY = os.environ.get("CRASH_POINTS") == "all"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_nothing_is_lost_whatever_call_was_the_last_and_whichever_answer_is_lost(
    scenario: Scenario, manager: Manager, record_property: Callable[[str, object], None]
) -> None:
    reference = undisturbed(manager, scenario)
    assert reference.calls

    failures: list[str] = []
    survived = [f"{len(reference.calls)}"]
    for blow in get_args(Blow):
        chosen = [*points(scenario, blow, len(reference.calls), EVERY)]
        before = len(failures)
        quiet = QUIET_AFTER_LOSS if EVERY and blow == "lost answer" else QUIET
        for number in chosen:
            try:
                disturbed(manager, scenario, reference, blow, number, quiet)
            except AssertionError as error:
                failures.append(f"{blow} at call {number}: {error}")
        survived.append(f"{len(chosen) - (len(failures) - before)}/{len(chosen)}")
    for column, value in zip(COLUMNS, survived, strict=True):
        record_property(column, value)

    assert not failures, "\n\n".join([*failures, "calls in peace:", *reference.calls, manager.log_tail()])
