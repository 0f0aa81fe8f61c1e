"""Clients of a load balancer, and the failures that they saw."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.local_stack import http_get

CLIENTS = 4
RATE = 200
"""Requests per second of all clients together, at most: they notice an outage of a few hundredths of a second, and
leave the machine to what is tested."""
PERIOD = CLIENTS / RATE
"""Seconds from one request of a client to its next."""


class Traffic:
    """Clients that request one URL by the clock, in turns, each time over a new connection.

    A client whose answer is late skips its turns, so a busy machine gets fewer requests, and no burst afterwards.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answers: list[tuple[float, str]] = []
        self._failures: list[tuple[float, str]] = []
        self._began = time.monotonic()
        self._threads = [threading.Thread(target=self._ask, args=(each,), daemon=True) for each in range(CLIENTS)]

    @contextmanager
    def flowing(self) -> Iterator[Traffic]:
        """Clients send requests until the block ends."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def answers_since(self, moment: float) -> Counter[str]:
        """How many requests that started after `moment` (monotonic) each node has answered."""
        with self._lock:
            return Counter(node for began, node in self._answers if began >= moment)

    def failures_since(self, moment: float) -> list[str]:
        """The failures of the requests that started after `moment`."""
        with self._lock:
            return [error for began, error in self._failures if began >= moment]

    def _ask(self, client: int) -> None:
        first = self._began + client / RATE
        while not self._stop.wait(_until_turn(time.monotonic(), first)):
            began = time.monotonic()
            try:
                node = str(http_get(self._url)["node"])
                with self._lock:
                    self._answers.append((began, node))
            except (OSError, http.client.HTTPException, ValueError) as error:
                with self._lock:
                    self._failures.append((began, repr(error)))


def _until_turn(now: float, first: float) -> float:
    """Seconds until the client's next turn, the first of which was at `first`."""
    return (first - now) % PERIOD
