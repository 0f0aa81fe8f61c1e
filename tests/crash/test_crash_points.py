"""Whatever call was the manager's last, and whichever answer was lost: the end is that of an undisturbed run.

All calls with CRASH_POINTS=all (`make crash-test`), else one call of a scenario.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash.environment import Manager
from tests.crash.scenarios import SCENARIOS, Run
from tests.crash.trial import Scenario, survive
from tests.sampling import mostly_nightly

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("scenario", mostly_nightly(SCENARIOS), ids=lambda scenario: scenario.name)
def test_nothing_is_lost_whatever_call_was_the_last_and_whichever_answer_is_lost(
    scenario: Scenario[Run], manager: Manager, record_property: Callable[[str, object], None]
) -> None:
    survive(manager, lambda: Run(manager.environment), scenario, record_property)
