"""Waits a few seconds for what the cloud is still doing, and leaves what takes longer to the next plan."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cloud_controller.cloud import Conflict, Postponed
from cloud_controller.clouds.alicloud.client import Client
from cloud_controller.clouds.alicloud.errors import error_code

SECONDS = 6.0
"""For so long a worker waits: most changes take less."""
_FIRST_PAUSE = 0.4
_LONGEST_PAUSE = 2.0
_BUSY = re.compile(
    r"Incorrect\w*Status(\..+)?|(.+\.)?\w*[Cc]onfiguring(\..+)?|\w*Is(Stopping|Starting)(\..+)?"
    r"|OperationConflict|.*Conflict\.Lock"
)


def is_busy(error: Conflict) -> bool:
    """Whether the API refused a change because something is being done to the object."""
    return bool(_BUSY.fullmatch(error_code(error)))


class Patience:
    """How long to wait. Safe to share between threads."""

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._sleep = sleep
        self._clock = clock

    def until(self, holds: Callable[[], bool]) -> bool:
        """Ask until it holds or patience ends; whether it holds."""
        end, pause = self._clock() + self._seconds, _FIRST_PAUSE
        while not holds():
            if self._clock() + pause > end:
                return False
            self._sleep(pause)
            pause = min(_LONGEST_PAUSE, 1.5 * pause)
        return True

    def call(self, attempt: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
        """The answer of a call that is repeated while the object is busy. Raises Postponed if it stays busy."""
        answer: dict[str, Any] = {}
        busy: list[Conflict] = []

        def once() -> bool:
            try:
                answer.update(attempt())
            except Conflict as error:
                if not is_busy(error):
                    raise
                busy.append(error)
                return False
            return True

        if not self.until(once):
            raise Postponed(f"{what} has to wait: {busy[-1]}") from busy[-1]
        return answer


class PatientClient:
    """A client whose calls wait while their object is busy."""

    def __init__(self, client: Client, patience: Patience) -> None:
        self._client = client
        self._patience = patience

    def call(self, product: str, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """See `Client.call`. Raises Postponed if the object stays busy."""
        return self._patience.call(lambda: self._client.call(product, action, parameters), f"{product} {action}")

    def pages(self, product: str, action: str, parameters: Mapping[str, Any], path: str) -> Iterable[dict[str, Any]]:
        """See `Client.pages`."""
        return self._client.pages(product, action, parameters, path)
