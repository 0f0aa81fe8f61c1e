"""Stops a process on SIGTERM or SIGINT."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable


def on_stop_signal(act: Callable[[], None]) -> None:
    """Call `act` in a thread at the first SIGTERM or SIGINT from now on. To be called in the main thread."""
    received = queue.SimpleQueue[int]()

    def wait() -> None:
        received.get()
        act()

    # Not in the handler: it interrupts the main thread, which may hold any lock, such as that of an event that `act`
    # sets, and would wait for itself. A SimpleQueue may be interrupted anywhere.
    threading.Thread(target=wait, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: received.put(number))


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set from now on. To be called in the main thread."""
    stop = threading.Event()
    on_stop_signal(stop.set)
    return stop
