"""How the daemon logs: one line an event to stderr, `key=value` pairs after a few words; never a secret."""

from __future__ import annotations

import logging
import sys
import time

_FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s"


def configure(level: str) -> None:
    """Log to stderr from `level` (debug, info, warning, error) on; times are UTC."""
    formatter = logging.Formatter(_FORMAT, "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # It logs every request's path at debug, and a lost connection as a warning that our own errors tell better.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
