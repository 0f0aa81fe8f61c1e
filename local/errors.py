"""Errors that modules of several rooms raise, or pass on."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str], None]
"""Tells people in a line what takes its time."""


class SiteError(Exception):
    """An operation on the site failed; the message says why and what to do."""


class BuildError(Exception):
    """A program of others is not available; the message says why and what to do."""
