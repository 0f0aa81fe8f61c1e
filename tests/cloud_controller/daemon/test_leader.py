"""One of several candidates leads, and another takes over only when it may."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from cloud_controller.daemon.leader import LeaderElector, LeaseTimes, since_boot
from cloud_controller.fence import WriteRefused
from cloud_controller.kube import LEASES, Object, UnreachableError
from tests.clock import Clock
from tests.fake_kubernetes import FakeKubernetes

TIMES = LeaseTimes(15, 10, 2)
DOWN = UnreachableError("down")


def lease(api: FakeKubernetes) -> Object:
    return api.objects(LEASES)["kube-system/lease"]


def holder(api: FakeKubernetes) -> str:
    return str(lease(api)["spec"]["holderIdentity"])


def steal(api: FakeKubernetes) -> None:
    """Another takes the lease."""
    api.change(LEASES, "kube-system/lease", lambda stolen: stolen["spec"].update(holderIdentity="b"))


@pytest.fixture
def leases() -> FakeKubernetes:
    return FakeKubernetes()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def candidate(name: str, leases: FakeKubernetes, clock: Clock) -> LeaderElector:
    return LeaderElector(leases, "kube-system", "lease", identity=name, times=TIMES, clock=clock)


def test_the_first_candidate_leads_and_the_second_waits(leases: FakeKubernetes, clock: Clock) -> None:
    assert candidate("a", leases, clock).try_once()
    assert not candidate("b", leases, clock).try_once()
    assert holder(leases) == "a"


def test_a_lease_that_is_renewed_is_never_taken(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    for _ in range(20):
        assert a.try_once()
        assert not b.try_once()
        clock.now += 10

    assert holder(leases) == "a"


def test_a_lease_that_is_not_renewed_is_taken_after_its_duration(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()

    clock.now += 100  # Before b first saw it: nothing follows from that.
    assert not b.try_once()
    clock.now += 14.9
    assert not b.try_once()
    clock.now += 0.1
    assert b.try_once()

    assert holder(leases) == "b"
    assert lease(leases)["spec"]["leaseTransitions"] == 1
    assert not a.try_once()


def test_a_released_lease_is_taken_at_once(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()

    a.release()

    assert b.try_once()


def test_only_its_holder_releases_a_lease(leases: FakeKubernetes, clock: Clock) -> None:
    candidate("a", leases, clock).try_once()

    candidate("b", leases, clock).release()

    assert holder(leases) == "a"


def test_of_two_that_take_a_free_lease_at_once_only_one_leads(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()
    a.release()
    leases.meddle(b.try_once, "replace", times=1)

    assert not a.try_once()
    assert holder(leases) == "b"


def test_a_lease_that_somebody_deletes_is_not_taken_while_its_holder_may_write(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()
    b.try_once()

    leases.objects(LEASES).clear()
    clock.now += 9
    assert not b.try_once()
    leases.create(LEASES, {"metadata": {"name": "lease", "namespace": "kube-system"}, "spec": {}})  # As `confirm` does.
    clock.now += 0.9
    assert not b.try_once()
    a.fence()
    clock.now += 5.1
    assert b.try_once()

    with pytest.raises(WriteRefused):
        a.fence()


def test_a_holder_makes_a_lease_again_that_somebody_deletes(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()
    b.try_once()

    leases.objects(LEASES).clear()

    assert a.try_once(renew=True)
    assert not b.try_once()


def test_a_holder_that_loses_its_lease_stops_holding(leases: FakeKubernetes, clock: Clock) -> None:
    a = candidate("a", leases, clock)
    a.try_once()
    steal(leases)

    assert a.hold(Stop(clock)) is False


def test_a_holder_that_can_not_renew_gives_up_before_another_may_take_over(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a = candidate("a", leases, clock)
    a.try_once()
    leases.fail(DOWN)

    assert a.hold(Stop(clock)) is False
    assert TIMES.renew_deadline <= clock.now < TIMES.lease_duration


def test_a_lease_is_overdue_while_its_renewal_still_waits_for_an_answer(leases: FakeKubernetes, clock: Clock) -> None:
    a = candidate("a", leases, clock)
    assert a.acquire(threading.Event())
    clock.now = TIMES.renew_deadline - 0.1
    assert not a.overdue()

    clock.now = TIMES.renew_deadline

    assert a.overdue()


def test_a_lease_runs_from_when_it_was_asked_for_not_from_when_its_holder_learnt_of_it(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a = candidate("a", leases, clock)
    leases.meddle(lambda: setattr(clock, "now", clock.now + 3), "create")  # The answer takes so long.
    assert a.acquire(threading.Event())
    leases.fail(DOWN)

    assert a.hold(Stop(clock)) is False

    assert clock.now < TIMES.renew_deadline + TIMES.retry_period


def test_a_lease_that_is_renewed_is_never_overdue(leases: FakeKubernetes, clock: Clock) -> None:
    a = candidate("a", leases, clock)
    a.acquire(threading.Event())

    assert a.hold(Stop(clock, lambda tick: tick == 50 or a.overdue())) is True
    assert clock.now == 50 * TIMES.retry_period


def test_a_holder_survives_a_short_outage(leases: FakeKubernetes, clock: Clock) -> None:
    a = candidate("a", leases, clock)
    a.try_once()

    def outage(tick: int) -> bool:
        if tick == 2:
            leases.fail(DOWN)
        if tick == 5:
            leases.before.clear()
        return tick == 20

    assert a.hold(Stop(clock, outage)) is True


def test_a_holder_that_was_paused_beyond_its_deadline_does_not_renew_though_nobody_took_the_lease(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a = candidate("a", leases, clock)
    a.try_once()
    written = lease(leases)["metadata"]["resourceVersion"]
    clock.now += TIMES.renew_deadline

    assert a.hold(Stop(clock)) is False
    assert lease(leases)["metadata"]["resourceVersion"] == written


def test_a_holder_does_not_renew_a_lease_that_another_had_and_gave_back(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()
    a.release()
    b.try_once()
    b.release()
    a._renewed_at = clock.now  # It was paused, and knows nothing of all this.

    assert a.hold(Stop(clock)) is False
    assert holder(leases) == ""


def test_a_renewal_that_meets_another_write_to_the_lease_counts_only_once_it_is_written(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    a.try_once()
    b.try_once()
    clock.now += 14

    def annotate() -> None:
        leases.change(LEASES, "kube-system/lease", lambda renewed: renewed["metadata"].update(annotations={"a": "b"}))

    leases.meddle(annotate, "replace", times=1)
    assert a.try_once(renew=True)
    clock.now += 14

    assert not b.try_once()


# -------------------------------------------------------------------------------------------------------- the fence


def is_open(elector: LeaderElector) -> bool:
    try:
        elector.fence()
    except WriteRefused:
        return False
    return True


def test_only_the_holder_of_the_lease_may_write(leases: FakeKubernetes, clock: Clock) -> None:
    a, b = candidate("a", leases, clock), candidate("b", leases, clock)
    assert not is_open(a)

    a.try_once()
    b.try_once()

    assert is_open(a)
    assert not is_open(b)


def test_a_holder_may_not_write_from_its_deadline_on_whatever_its_threads_have_noticed(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a = candidate("a", leases, clock)
    a.try_once()

    clock.now += TIMES.renew_deadline - 0.1
    assert is_open(a)
    clock.now += 0.1
    assert not is_open(a)


def test_the_time_in_which_a_holder_may_write_counts_from_when_its_renewal_began(
    leases: FakeKubernetes, clock: Clock
) -> None:
    a = candidate("a", leases, clock)
    leases.meddle(lambda: setattr(clock, "now", clock.now + 3), "create")  # The answer takes so long.
    a.try_once()

    clock.now = TIMES.renew_deadline

    assert not is_open(a)


@pytest.mark.parametrize("how", ["released", "taken"])
def test_a_holder_may_not_write_once_its_lease_is_gone(leases: FakeKubernetes, clock: Clock, how: str) -> None:
    a = candidate("a", leases, clock)
    a.try_once()

    if how == "released":
        a.release()
    else:
        steal(leases)
        a.hold(Stop(clock))

    assert not is_open(a)


def test_no_other_candidate_takes_a_lease_while_its_holder_may_write(leases: FakeKubernetes) -> None:
    times, clock = LeaseTimes(1.4, 1.3, 0.1), Clock()
    a, b = (LeaderElector(leases, "kube-system", "lease", identity=each, times=times, clock=clock) for each in "ab")
    a.try_once()
    b.try_once()

    clock.now += 1.29

    assert is_open(a)
    assert not b.try_once()


def test_the_lease_runs_out_while_the_machine_is_suspended() -> None:
    assert since_boot() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)


# -------------------------------------------------------------------------------------------------------------------


def test_a_lease_that_can_not_be_asked_for_is_trouble_until_it_can(leases: FakeKubernetes, clock: Clock) -> None:
    a = candidate("a", leases, clock)
    leases.fail(DOWN)
    assert not a.acquire(Stop(clock), within=10)
    assert a.trouble == "down"

    leases.before.clear()

    assert a.acquire(Stop(clock))
    assert a.trouble is None


def test_whoever_is_told_to_stop_does_not_wait_for_the_lease(leases: FakeKubernetes, clock: Clock) -> None:
    stop = threading.Event()
    stop.set()

    assert candidate("a", leases, clock).acquire(stop) is False


class Stop(threading.Event):
    """Passes time on the test's clock instead of waiting; `end` says at which tick it is set."""

    def __init__(self, clock: Clock, end: Any = lambda _: False) -> None:
        super().__init__()
        self._clock = clock
        self._end = end
        self._tick = 0

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.now += timeout or 0
        self._tick += 1
        assert self._tick < 1000
        return bool(self._end(self._tick))


def test_the_lease_tells_the_machine_of_its_holder(leases: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTNAME", "control-plane-1")

    assert LeaderElector(leases, "kube-system", "lease").identity.startswith("control-plane-1_")
