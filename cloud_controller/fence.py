"""Whether this process may write now: asked right before each attempt at a request that changes something.

A periodic check is not enough. A process that was paused (SIGSTOP, a suspended machine) wakes in the middle of its
work, and its next request may be a write while another process leads.
"""

from __future__ import annotations

from collections.abc import Callable

Fence = Callable[[], None]
"""Returns if a write may be sent now, else raises `WriteRefused`. Called from any thread."""


class WriteRefused(Exception):
    """The write was not sent, because this process may not write (any more).

    It is neither a CloudError nor an ApiError: nothing retries it or reports it at an object; it ends the process.
    """


def unfenced() -> None:
    """The fence of a process that needs no lease: it may always write."""


def read_only() -> None:
    """The fence of a dry run."""
    raise WriteRefused("a dry run writes nothing")
