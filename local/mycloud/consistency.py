"""The lag of lists: new objects may be missing from them for a while, as in clouds of many servers."""

from __future__ import annotations

import time

from local.mycloud.models.common import rfc3339


class Consistency:
    """The lag of lists in seconds; 0 until a test sets it, and after each start of the API."""

    def __init__(self) -> None:
        self.lag_seconds = 0.0

    def horizon(self) -> str | None:
        """Lists contain what was made until then; None: everything."""
        return rfc3339(time.time() - self.lag_seconds) if self.lag_seconds else None
