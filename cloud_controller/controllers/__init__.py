"""The controllers, and the interface through which the manager runs them.

Each has three steps: `observe` reads Kubernetes objects and cloud resources in batches, `plan` is pure, and
`cloud_controller.apply` carries the plan out. A class beside them is the daemon's loop around these steps.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Protocol

from cloud_controller.binding import Evidence


class Controller(Protocol):
    """One controller's loop in the daemon. The manager starts and syncs its informers before `start`."""

    @property
    def name(self) -> str:
        """One of NAMES."""
        ...

    def evidence(self) -> Evidence | None:
        """Whose the controller's cloud resources are (None: it creates none). The first pass reuses this read.

        Called before `start`, and again after an error. Raises `CloudError`.
        """
        ...

    def confirmed(self, targets: Collection[str]) -> None:
        """Held actions of these targets were confirmed: plan for them again soon."""
        ...

    def start(self, stop: threading.Event) -> None:
        """Start the controller's threads, which run until `stop` is set. Informer handlers must have been added before,
        in the constructor."""
        ...

    def join(self, timeout: float) -> bool:
        """Wait for the threads after `stop` is set; False if they have not ended within `timeout` seconds."""
        ...

    def ended(self) -> str | None:
        """For /healthz: a failure that requires a restart (a thread has stopped), or None."""
        ...

    def trouble(self) -> str | None:
        """For /readyz: why the controller does not work at present, or None."""
        ...
