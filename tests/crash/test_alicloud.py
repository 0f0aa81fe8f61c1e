"""As `test_crash_points` and `test_faults`, for the daemon on Alibaba Cloud's stand-in: one file, one control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from local.alicloud import machines
from local.alicloud.sts import add_role
from tests.crash import alicloud_faults as faults
from tests.crash.alicloud_environment import ROLE, AliCloudEnvironment, alicloud_environment
from tests.crash.alicloud_scenarios import ALICLOUD_SCENARIOS, AliCloudRun
from tests.crash.cloud_scenarios import WORK
from tests.crash.daemon import Daemon
from tests.crash.trial import Scenario, survive
from tests.crash.under_fault import SHORT_SILENCE, Fault, Outcome, endure, peace, work_under
from tests.sampling import mostly_nightly

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(3600)]

FLAGS = ("--leader-elect=false", "--node-monitor-period=500ms")
UNDER_FAULTS = (*FLAGS, "--service-resync-period=5s")
"""Otherwise, what is made is not listed again."""
SECONDS_A_CALL = 2.0
LAG = 2.0
BUSY = 1.0


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AliCloudEnvironment]:
    """A real API server and the stand-in; tests leave nothing in them."""
    with alicloud_environment(tmp_path_factory.mktemp("alicloud")) as made:
        yield made


@pytest.fixture(scope="module")
def killed(environment: AliCloudEnvironment) -> Iterator[Daemon]:
    """The daemon that is killed again and again; there is one, so it needs no lease."""
    with environment.daemon("killed", *FLAGS) as made:
        yield made


@pytest.fixture
def daemon(environment: AliCloudEnvironment, killed: Daemon) -> Iterator[Daemon]:
    """One of a test's own, with proxies of its own."""
    killed.kill()  # Two without a lease would both write.
    with environment.daemon("faults", *UNDER_FAULTS, prelude=SHORT_SILENCE) as made:
        yield made


@pytest.fixture(scope="module")
def in_peace(environment: AliCloudEnvironment, killed: Daemon) -> Outcome:
    """The work without any fault."""
    killed.kill()
    with environment.daemon("peace", *UNDER_FAULTS, prelude=SHORT_SILENCE) as made:
        return work_under(made, lambda: AliCloudRun(environment), WORK, peace)


@pytest.mark.parametrize("scenario", mostly_nightly(ALICLOUD_SCENARIOS), ids=lambda scenario: scenario.name)
def test_nothing_is_lost_or_leaked_whatever_call_was_the_last_and_whichever_answer_is_lost(
    scenario: Scenario[AliCloudRun],
    environment: AliCloudEnvironment,
    killed: Daemon,
    record_property: Callable[[str, object], None],
) -> None:
    survive(killed, lambda: AliCloudRun(environment), scenario, record_property)


@pytest.mark.parametrize(
    "fault",
    mostly_nightly(
        [
            pytest.param(faults.throttled, id="Alibaba Cloud: half of the calls are throttled"),
            pytest.param(faults.failing, id="Alibaba Cloud: three of ten calls fail"),
            pytest.param(
                lambda made: faults.slow(made, SECONDS_A_CALL), id="Alibaba Cloud: each call takes two seconds"
            ),
            pytest.param(lambda made: faults.lists_lag(made, LAG), id="Alibaba Cloud: lists are two seconds behind"),
            pytest.param(
                lambda made: faults.busy(made, BUSY), id="Alibaba Cloud: load balancers are configuring, jobs fail"
            ),
        ]
    ),
)
def test_it_comes_to_the_same_end_at_a_bounded_price_though(
    fault: Callable[[AliCloudEnvironment], Fault[Daemon]],
    environment: AliCloudEnvironment,
    daemon: Daemon,
    in_peace: Outcome,
    record_property: Callable[[str, object], None],
) -> None:
    endure(daemon, lambda: AliCloudRun(environment), WORK, fault(environment), in_peace, record_property)


def test_an_expired_key_stops_it_only_until_its_machine_has_another(
    environment: AliCloudEnvironment,
    daemon: Daemon,
    in_peace: Outcome,
    record_property: Callable[[str, object], None],
) -> None:
    with environment.cloud.changing() as account:
        add_role(account, ROLE, ["ecs"])
        environment.cloud.metadata.machine = machines.add_instance(account, "vsw-h", name="of-the-pod", role=ROLE)
    daemon.cloud_config.write_text(environment.config_of_role(daemon.cloud.url))

    endure(daemon, lambda: AliCloudRun(environment), WORK, faults.expiry(environment), in_peace, record_property)
