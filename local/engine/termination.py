"""SIGTERM ends a run as Ctrl-C does: what runs may finish, nothing new begins."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final

SIGNALS_SEEN_EVERY: Final = 0.5
"""Seconds that the main thread may wait for others in one go.

Python runs the handler of a signal when a wait is interrupted, and goes on waiting after it: a second signal that comes
during the handler is seen only at the end of that wait.
"""


class Terminated(KeyboardInterrupt):
    """A SIGTERM came."""


def heed() -> None:
    """Raise Terminated in the main thread at the first SIGTERM.

    One that comes after it is nothing new: what sends it to a whole group of processes reaches this one through `make`
    as well. Ctrl-C, or SIGKILL, ends at once what does not end.
    """
    signal.signal(signal.SIGTERM, _first)


def _first(number: int, frame: FrameType | None) -> None:
    del number, frame
    # Not SIG_IGN: processes that are started later would inherit it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    raise Terminated
