"""Tracks the Services that wait: for new members to become healthy, or for the cloud."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.apply import HandingOver
from cloud_controller.controllers.service.events import Reported, ServiceEvents
from cloud_controller.controllers.service.timing import Polling

LONG_WAIT = 600.0
"""Seconds after which a wait for the cloud is no longer normal: its own worker may have died."""


class Waits:
    """Since when each Service (NAMESPACE/NAME) waits, and the events that it has reported since.

    Hand-overs are separate from other waits: a slow cloud must not delay the removal of members without successor.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._handovers = Polling(clock)
        self._cloud = Polling(clock)
        self._reported: dict[str, frozenset[Reported]] = {}

    def handing_over(self, key: str) -> bool:
        """Whether old members of this Service keep serving until new ones are healthy."""
        return self._handovers.waits_for(key)

    def for_cloud(self, key: str) -> bool:
        """Whether the cloud is still working on a change of this Service."""
        return self._cloud.waits_for(key)

    def reported(self, key: str) -> frozenset[Reported]:
        """The events that must not be repeated while this Service waits."""
        return self._reported.get(key, frozenset())

    def postpone(self, key: str, postponed: Sequence[Postponed], events: ServiceEvents) -> float:
        """Record and report, once, what a reconcile postponed; return the seconds until the next reconcile."""
        handovers = [each for each in postponed if isinstance(each, HandingOver)]
        cloud = [each for each in postponed if not isinstance(each, HandingOver)]
        pauses = []
        for polling, reasons in ((self._handovers, handovers), (self._cloud, cloud)):
            if not reasons:
                polling.stop(key)
                continue
            if not polling.waits_for(key):
                events.postponed(reasons[-1])
            pauses.append(polling.pause_of(key))
        if cloud and self._cloud.age(key) >= LONG_WAIT:
            events.waits_long(cloud[-1], LONG_WAIT)
        self._reported[key] = events.reported
        return min(pauses)

    def clear(self, key: str) -> None:
        """This Service no longer waits for anything."""
        self._handovers.stop(key)
        self._cloud.stop(key)
        self._reported.pop(key, None)
