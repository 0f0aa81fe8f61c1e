"""SIGTERM ends a run as Ctrl-C does: what runs may finish, nothing new begins."""

from __future__ import annotations

import signal
from types import FrameType


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
