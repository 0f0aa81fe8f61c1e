"""Tests of how long Services wait for the cloud."""

from __future__ import annotations

from unittest.mock import create_autospec

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.events import ServiceEvents
from cloud_controller.controllers.service.waits import LONG_WAIT, Waits
from cloud_controller.events import Events

WHY = Postponed("Octavia is still changing load balancer lb-1")


SERVICE = {"metadata": {"namespace": "default", "name": "web"}}


class Waiting:
    """One Service whose every reconcile the cloud postpones."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits = Waits(lambda: self.now)
        self.events = create_autospec(Events, instance=True)

    def postpone(self, after: float) -> None:
        self.now += after
        told = ServiceEvents(self.events, SERVICE, wanted=True, reported=self.waits.reported("default/web"))
        self.waits.postpone("default/web", [WHY], told)


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
