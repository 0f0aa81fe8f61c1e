"""SIGTERM ends a run as Ctrl-C does: running steps finish, no new ones start."""

from __future__ import annotations

import signal
from types import FrameType


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
