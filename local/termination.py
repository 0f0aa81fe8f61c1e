"""SIGTERM ends a run as Ctrl-C does: running steps finish, no new ones start."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final

SIGNALS_SEEN_EVERY: Final = 0.5
"""Seconds that the main thread may wait for others in one go.

Python runs a signal's handler when a wait is interrupted, and then resumes the wait: a second signal during the handler
is noticed only at the end of that wait.
"""


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


def heed() -> None:
    """Raise Terminated in the main thread at the first SIGTERM.

    Later ones are ignored: a signal to a whole process group also arrives through `make`. Ctrl-C or SIGKILL stops a run
    that does not end.
    """
    signal.signal(signal.SIGTERM, _first)


def _first(number: int, frame: FrameType | None) -> None:
    del number, frame
    # Not SIG_IGN: processes started later would inherit it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    raise Terminated
