"""Dry run: logs each controller's plan whenever it changes, and writes nothing.

It needs only read access and can run beside an active daemon.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Collection

from cloud_controller.cloud import CloudError
from cloud_controller.kube import ApiError
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Plan

_log = logging.getLogger(__name__)


class DryRun:
    """A `Controller` that plans every `period` seconds and logs the plan if it has changed."""

    def __init__(self, name: str, find: Callable[[], Plan], metrics: Metrics, period: float) -> None:
        self._name = name
        self._find = find
        self._metrics = metrics
        self._period = period
        self._logged: Plan | None = None
        self._trouble: str | None = None
        self._thread: threading.Thread | None = None
        self._stop: threading.Event | None = None

    @property
    def name(self) -> str:
        """The name of the controller that is planned for."""
        return self._name

    def evidence(self) -> None:
        """See `Controller.evidence`. None: a dry run writes nothing, so it needs no proof of ownership."""

    def confirmed(self, targets: Collection[str]) -> None:
        """See `Controller.confirmed`. The next plan takes it into account."""

    def start(self, stop: threading.Event) -> None:
        """See `Controller.start`."""
        self._stop = stop
        self._thread = threading.Thread(target=self._run, args=(stop,), name=f"dry-run-{self._name}", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> bool:
        """See `Controller.join`."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def ended(self) -> str | None:
        """See `Controller.ended`."""
        if self._thread is not None and not self._thread.is_alive() and not (self._stop and self._stop.is_set()):
            return "its thread has stopped"
        return None

    def trouble(self) -> str | None:
        """See `Controller.trouble`."""
        return self._trouble

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._log_plan()
            # Jitter keeps the controllers of many clusters from querying one cloud at the same time.
            stop.wait(self._period * random.uniform(0.9, 1.1))

    def _log_plan(self) -> None:
        try:
            with self._metrics.timed(self._name):
                plan = self._find()
        except (CloudError, ApiError) as error:
            self._trouble = f"{type(error).__name__}: {error}"
            _log.warning("planning failed controller=%s error=%r", self._name, str(error))
            return
        self._trouble = None
        if plan == self._logged:
            return
        self._logged = plan
        self._metrics.planned(self._name, plan)
        self._metrics.ignored.labels(self._name).set(len(plan) - len(plan.changes))
        _log.info("dry-run plan controller=%s changes=%d", self._name, len(plan.changes))
        for action in plan:
            _log.info("would %s controller=%s target=%s plan=%r", action.kind, self._name, action.target, str(action))
            for change in action.changes:
                _log.info("would change controller=%s target=%s field=%r", self._name, action.target, str(change))
