"""Tests of how long Services wait for the cloud."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import create_autospec

import pytest

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.events import ServiceEvents
from cloud_controller.controllers.service.waits import LONG_WAIT, Waits
from cloud_controller.events import Events
from cloud_controller.load_balancers.model import LoadBalancerModel, LoadBalancerState, ObservedLoadBalancer

WHY = Postponed("Octavia is still changing load balancer lb-1")


SERVICE = {"metadata": {"namespace": "default", "name": "web"}}
WORKED_ON = ObservedLoadBalancer("lb-1", LoadBalancerState.PENDING, LoadBalancerModel("web"), settled=False)


class Waiting:
    """One Service that waits for its cloud."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = Waits(lambda: self.now)
        self.events = create_autospec(Events, instance=True)

    def postpone(self, after: float) -> None:
        """A reconcile whose change the cloud postpones."""
        self.now += after
        self.waits.postpone("default/web", [WHY], self._told())

    def rest(self, after: float, *load_balancers: ObservedLoadBalancer) -> float | None:
        """A reconcile that finds nothing to do."""
        self.now += after
        return self.waits.rest("default/web", load_balancers, self._told())

    def _told(self) -> ServiceEvents:
        return ServiceEvents(self.events, SERVICE, wanted=True, reported=self.waits.reported("default/web"))


def test_a_service_that_waits_long_for_the_cloud_gets_one_warning() -> None:
    waiting = Waiting()

    waiting.postpone(0)
    waiting.postpone(LONG_WAIT - 1)
    waiting.events.warning.assert_not_called()
    waiting.postpone(1)
    waiting.postpone(60)

    waiting.events.warning.assert_called_once_with(SERVICE, "StillWaiting", f"Waiting for more than 10 minutes: {WHY}")
    waiting.events.normal.assert_called_once_with(SERVICE, "Waiting", str(WHY))


def test_a_wait_that_ended_does_not_count_for_the_next() -> None:
    waiting = Waiting()

    waiting.postpone(0)
    waiting.waits.clear("default/web")
    waiting.postpone(LONG_WAIT)

    waiting.events.warning.assert_not_called()


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (LoadBalancerState.PENDING, "created"),
        (LoadBalancerState.READY, "changed"),
        (LoadBalancerState.DELETING, "deleted"),
    ],
)
def test_a_load_balancer_that_the_cloud_does_not_finish_is_told_once(state: LoadBalancerState, said: str) -> None:
    waiting, lb = Waiting(), replace(WORKED_ON, state=state)

    assert waiting.rest(0, lb) == LONG_WAIT
    assert waiting.rest(LONG_WAIT - 1, lb) == 1
    waiting.events.warning.assert_not_called()
    assert waiting.rest(1, lb) is None
    assert waiting.rest(60, lb) is None

    why = f"Waiting for more than 10 minutes: load balancer lb-1 is still being {said}"
    waiting.events.warning.assert_called_once_with(SERVICE, "StillWaiting", why)


def test_progress_of_a_load_balancer_begins_its_time_anew() -> None:
    waiting = Waiting()

    waiting.rest(0, WORKED_ON)
    waiting.rest(LONG_WAIT - 1, replace(WORKED_ON, state=LoadBalancerState.READY))
    left = waiting.rest(1, replace(WORKED_ON, state=LoadBalancerState.READY))

    assert left == LONG_WAIT - 1
    waiting.events.warning.assert_not_called()


def test_a_service_whose_load_balancers_are_all_finished_is_not_visited_again() -> None:
    waiting = Waiting()

    waiting.rest(0, WORKED_ON)

    assert waiting.rest(1) is None
    assert waiting.rest(0, WORKED_ON) == LONG_WAIT, "the finished work does not count for the next"
