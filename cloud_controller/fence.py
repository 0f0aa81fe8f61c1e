"""Write fencing: a check right before each attempt of a request that changes something.

A periodic check is not enough: a process that was paused (SIGSTOP, a suspended machine) resumes in the middle of its
work, and its next request may be a write while another process leads.
"""

from __future__ import annotations

from collections.abc import Callable

Fence = Callable[[], None]
"""Raises `WriteRefused` if no write may be sent now. Called from any thread."""


class WriteRefused(Exception):
    """The write was not sent, because this process may not write (any more).

    Neither a CloudError nor an ApiError: nothing may retry or report it. It ends the process.
    """


def unfenced() -> None:
    """The fence of a process without leader election: always open."""


def read_only() -> None:
    """The fence of a dry run: always closed."""
    raise WriteRefused("a dry run must not write")
