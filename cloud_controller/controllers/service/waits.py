"""Tracks the Services that wait: for new members to become healthy, or for the cloud."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.apply import HandingOver
from cloud_controller.controllers.service.events import Reported, ServiceEvents
from cloud_controller.controllers.service.timing import Polling
from cloud_controller.load_balancers.model import LoadBalancerState, ObservedLoadBalancer

LONG_WAIT = 600.0
"""Seconds after which a wait for the cloud is no longer normal: its own worker may have died."""
_WORK = {LoadBalancerState.PENDING: "created", LoadBalancerState.DELETING: "deleted"}


@dataclass(slots=True)
class _Work:
    """What the cloud is working on, in the state that it has shown since a moment, and whether that was reported."""

    on: tuple[ObservedLoadBalancer, ...]
    since: float
    reported: bool = False


class Waits:
    """Since when each Service (NAMESPACE/NAME) waits, and the events that it has reported since.

    Hand-overs are separate from other waits: a slow cloud must not delay the removal of members without successor.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._handovers = Polling(clock)
        self._cloud = Polling(clock)
        self._reported: dict[str, frozenset[Reported]] = {}
        self._work: dict[str, _Work] = {}

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
            events.waits_long(str(cloud[-1]), LONG_WAIT)
        self._reported[key] = events.reported
        return min(pauses)

    def rest(self, key: str, unsettled: Sequence[ObservedLoadBalancer], events: ServiceEvents) -> float | None:
        """Nothing is left to do for this Service until the cloud has finished its work on these load balancers.

        Report it, once, if that shows no progress for long; return the seconds until then, or None.
        """
        work = self._work.get(key)
        self.clear(key)
        if not unsettled:
            return None
        if work is None or work.on != (*unsettled,):
            work = _Work((*unsettled,), self._clock())
        self._work[key] = work
        left = work.since + LONG_WAIT - self._clock()
        if left > 0:
            return left
        if not work.reported:
            work.reported = True
            still = (f"load balancer {lb.id} is still being {_WORK.get(lb.state, 'changed')}" for lb in work.on)
            events.waits_long(", ".join(still), LONG_WAIT)
        return None

    def clear(self, key: str) -> None:
        """This Service no longer waits for anything."""
        self._handovers.stop(key)
        self._cloud.stop(key)
        self._reported.pop(key, None)
        self._work.pop(key, None)
