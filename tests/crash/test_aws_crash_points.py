"""As `test_crash_points`, for the daemon on AWS (moto)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.crash.aws_environment import AwsEnvironment, aws_environment
from tests.crash.aws_scenarios import AWS_SCENARIOS, AwsRun
from tests.crash.daemon import Daemon
from tests.crash.trial import Scenario, survive
from tests.sampling import mostly_nightly

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsEnvironment]:
    """A real API server and moto; tests leave nothing in them."""
    with aws_environment(tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture(scope="module")
def daemon(environment: AwsEnvironment) -> Iterator[Daemon]:
    """The one that is killed again and again; there is one, so it needs no lease."""
    with environment.daemon("daemon", "--leader-elect=false", "--node-monitor-period=500ms") as made:
        yield made


@pytest.mark.parametrize("scenario", mostly_nightly(AWS_SCENARIOS), ids=lambda scenario: scenario.name)
def test_nothing_is_lost_or_leaked_whatever_call_was_the_last_and_whichever_answer_is_lost(
    scenario: Scenario[AwsRun],
    environment: AwsEnvironment,
    daemon: Daemon,
    record_property: Callable[[str, object], None],
) -> None:
    survive(daemon, lambda: AwsRun(environment), scenario, record_property)
