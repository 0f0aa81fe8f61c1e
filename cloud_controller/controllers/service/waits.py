"""The Services of which a part has to wait: for new members, so that old ones serve on, or for the cloud."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from cloud_controller.cloud_errors import Postponed
from cloud_controller.controllers.service.apply import HandingOver
from cloud_controller.controllers.service.events import Said, ServiceEvents
from cloud_controller.controllers.service.timing import Polling


class Waits:
    """Since when each Service (NAMESPACE/NAME) waits, and what its events have said since.

    Handovers and the cloud are apart: while the cloud takes minutes, members without a successor go all the same.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._handovers = Polling(clock)
        self._cloud = Polling(clock)
        self._said: dict[str, frozenset[Said]] = {}

    def handing_over(self, key: str) -> bool:
        """Whether old members of this Service serve on until new ones are healthy."""
        return self._handovers.waits_for(key)

    def for_cloud(self, key: str) -> bool:
        """Whether the cloud is at work on a change of this Service."""
        return self._cloud.waits_for(key)

    def said(self, key: str) -> frozenset[Said]:
        """The events that are not repeated while this Service waits."""
        return self._said.get(key, frozenset())

    def begin_or_go_on(self, key: str, postponed: Sequence[Postponed], told: ServiceEvents) -> float:
        """A visit left these undone; says why, once. Seconds until the next visit."""
        handovers = [each for each in postponed if isinstance(each, HandingOver)]
        cloud = [each for each in postponed if not isinstance(each, HandingOver)]
        pauses = []
        for polling, reasons in ((self._handovers, handovers), (self._cloud, cloud)):
            if not reasons:
                polling.over(key)
                continue
            if not polling.waits_for(key):
                told.postponed(reasons[-1])
            pauses.append(polling.pause_of(key))
        self._said[key] = told.said
        return min(pauses)

    def over(self, key: str) -> None:
        """Nothing of this Service has to wait."""
        self._handovers.over(key)
        self._cloud.over(key)
        self._said.pop(key, None)
