"""Counts the Services that need somebody's attention, by reason."""

from __future__ import annotations

import threading
from collections import Counter

from cloud_controller.metrics import Metrics
from cloud_controller.plan import Attention

_WATCHED = (
    Attention.REFUSED,
    Attention.FAILED,
    Attention.ADDRESS_CHANGE_HELD,
    Attention.NO_BACKENDS,
    Attention.EXCLUDED,
)
"""The reasons that a reconcile finds."""


class ServicesNeedingAttention:
    """The reason of each Service (NAMESPACE/NAME), by its last plan; the gauge shows how many there are of each."""

    def __init__(self, metrics: Metrics) -> None:
        self._gauge = metrics.attention
        self._reasons: dict[str, Attention] = {}
        self._lock = threading.Lock()
        self._show()

    def note(self, key: str, reason: Attention | None) -> None:
        """The Service's last plan found this; None: it needs none, or is gone."""
        with self._lock:
            if self._reasons.get(key) is reason:
                return
            if reason is None:
                del self._reasons[key]
            else:
                self._reasons[key] = reason
            self._show()

    def _show(self) -> None:
        counts = Counter(self._reasons.values())
        for reason in _WATCHED:
            self._gauge.labels(reason.value).set(counts[reason])
