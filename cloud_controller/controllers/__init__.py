"""The controllers, and the interface through which the manager runs them.

Each module has three plain functions: `observe` reads the world (Kubernetes objects and the cloud, in batches), `plan`
is pure, and `cloud_controller.apply` carries a plan out. The class beside them is the daemon's loop around the three.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Protocol

from cloud_controller.binding import Evidence


class Controller(Protocol):
    """One controller's loop in the daemon. Made with its informers; they are started, and synced, by the manager."""

    @property
    def name(self) -> str:
        """One of NAMES."""
        ...

    def evidence(self) -> Evidence | None:
        """What the cloud has of this controller's kind of objects (None: no kind); its first pass uses the same read.

        Called before `start`, and again after an error. Raises `CloudError`.
        """
        ...

    def confirmed(self, targets: Collection[str]) -> None:
        """An administrator released the held actions of these targets: plan for them again soon."""
        ...

    def start(self, stop: threading.Event) -> None:
        """Work in threads of its own until `stop` is set; returns at once. Handlers are added to informers before
        this, in the constructor."""
        ...

    def join(self, timeout: float) -> bool:
        """Wait until its threads have ended after `stop` was set; False if they have not within `timeout` seconds."""
        ...

    def ended(self) -> str | None:
        """What only a restart can mend (for /healthz): a thread of it has ended before it should; else None."""
        ...

    def trouble(self) -> str | None:
        """Why it does not work at present (for /readyz), or None while it does."""
        ...
