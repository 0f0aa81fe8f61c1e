"""Session affinity by client address, for load balancers and node-proxiers."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection

from local.forwarding.target import Target

MAX_CLIENTS = 65_536
"""How many clients are remembered; the longest absent one is forgotten first."""


class ClientAffinity:
    """Keeps each client's backend until the client has opened no connection for `timeout` seconds."""

    def __init__(self, timeout: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout = timeout
        self._clock = clock
        self._kept: OrderedDict[str, tuple[Target, float]] = OrderedDict()

    def choose(self, client: str, offered: Collection[Target], pick: Callable[[], Target | None]) -> Target | None:
        """The client's backend if it is still offered, else the one from `pick`, from now on."""
        now = self._clock()
        self._forget_absent(now)
        target, _ = self._kept.get(client, (None, now))
        if target not in offered:
            target = pick()
        if target is not None:
            self._kept[client] = target, now
            self._kept.move_to_end(client)
        return target

    def _forget_absent(self, now: float) -> None:
        while self._kept:
            client, (_, last) = next(iter(self._kept.items()))
            if now - last < self.timeout and len(self._kept) < MAX_CLIENTS:
                return
            del self._kept[client]
