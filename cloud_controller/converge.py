"""Runs the controllers once: plan, ask for approval, acquire the lease, and apply until nothing is left to do.

Follow-up changes (such as the status once a load balancer exists) are planned in later rounds; the approval of the
first plan includes them. A running daemon holds the lease, so both never work at the same time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cloud_controller import apply
from cloud_controller.binding import Evidence
from cloud_controller.cloud import Cloud, CloudError, ForeignCluster
from cloud_controller.controllers.service.checkpoint import without_checkpoint
from cloud_controller.daemon.leader import LeaderElector
from cloud_controller.events import EventRecorder
from cloud_controller.kube import ApiError, KubeApi
from cloud_controller.plan import Action, ActionKind, object_of
from cloud_controller.planning import Found
from cloud_controller.retries import round_pause, worth_another_round
from cloud_controller.safeguard import Safeguard

COMPONENT = "cloud-controller-apply"
"""The source of its events."""


class Refused(Exception):
    """Nothing was changed: the plan was not approved, or another process holds the lease."""


@dataclass
class Report:
    """The outcome. `failed`: the last error of each action that did not succeed later; `left`: what remains to do."""

    results: list[tuple[str, apply.ActionResult]] = field(default_factory=list)
    failed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def applied(self) -> int:
        """The number of successful actions."""
        return sum(result.ok for _, result in self.results)

    @property
    def complete(self) -> bool:
        """Whether nothing is left."""
        return not self.failed and not self.left

    def to_json(self) -> dict[str, Any]:
        """For `--output json`."""
        actions = [
            {"controller": name, **result.action.to_json(), **({"error": str(result.error)} if result.error else {})}
            for name, result in self.results
        ]
        return {"actions": actions, "failed": [*self.failed], "left": [*self.left]}


@dataclass
class Converge:
    """One run over `finders`, which plan for one controller each. `show` prints the first plans, `done` each result.

    `prove`: raises ForeignCluster by the controllers' evidence (`proof.prove`).
    """

    kube: KubeApi
    cloud: Cloud
    finders: Mapping[str, Callable[[], Found]]
    prove: Callable[[Sequence[Evidence]], None]
    show: Callable[[str, Found], None]
    approve: Callable[[int], bool]
    done: Callable[[apply.ActionResult], None]
    safeguard: Safeguard
    _reported: set[str] = field(default_factory=set)

    def run(self, elector: LeaderElector | None, deadline: float, begin: Callable[[], threading.Event]) -> Report:
        """Plan, ask for approval and apply, for at most `deadline` seconds after the approval.

        `begin` is called after the approval and returns the event that stops the run. Raises Refused, ForeignCluster,
        WriteRefused if the lease is lost, and the errors of the first plans.
        """
        first = {name: find() for name, find in self.finders.items()}
        self.prove([found.evidence for found in first.values() if found.evidence])
        for name, found in first.items():
            self.show(name, found)
        changes = sum(len(_changes(found)) for found in first.values())
        if changes and not self.approve(changes):
            raise Refused("nothing was changed")
        self.safeguard.record({name: found.plan.held for name, found in first.items()})
        if not changes and not any(found.busy for found in first.values()):
            return Report()
        end, stop = time.monotonic() + deadline, begin()
        if elector is not None:
            self.kube = self.kube.fenced(elector.fence)
            self.cloud.fence_writes(elector.fence)
            self.safeguard.fence_writes(elector.fence)
        events = EventRecorder(self.kube, COMPONENT)
        try:
            with _lease(elector, stop):
                return self._rounds(end, stop, events)
        finally:
            events.close()

    def _rounds(self, end: float, stop: threading.Event, events: EventRecorder) -> Report:
        report = Report()
        failures: dict[str, str] = {}
        rounds = 0
        while True:
            left: list[str] = []
            unplanned: list[str] = []
            hopeful = False
            for name, find in self.finders.items():
                try:
                    found = find()
                    changes = _changes(found)
                    if any(action.kind is ActionKind.DELETE for action in changes):
                        self.safeguard.verify()
                except ForeignCluster:
                    raise
                except (CloudError, ApiError) as error:
                    # Raised, it would hide what has been done.
                    unplanned.append(f"{name}: {error}")
                    hopeful = hopeful or worth_another_round(error)
                    continue
                hopeful = hopeful or bool(found.busy)
                left += [f"{name}: the cloud is still working on {busy}" for busy in found.busy]
                left += [str(action) for action in changes]
                if changes and not stop.is_set() and time.monotonic() < end:
                    results = self._apply(name, found, events, stop)
                    report.results += [(name, result) for result in results]
                    done = {str(result.action) for result in results if result.ok}
                    left = [each for each in left if each not in done]
                    failures = {action: error for action, error in failures.items() if action not in done}
                    failures |= {str(result.action): str(result) for result in results if not result.ok}
                    hopeful = hopeful or _may_go_on(changes, results)
            report.left = tuple(left)
            report.failed = (*unplanned, *(failures[each] for each in left if each in failures))
            if not hopeful:  # Nothing is left to do, or nothing that a retry would fix.
                return report
            rounds += 1
            if time.monotonic() >= end or stop.wait(min(round_pause(rounds), max(0.0, end - time.monotonic()))):
                return report

    def _apply(self, name: str, found: Found, events: EventRecorder, stop: threading.Event) -> list[apply.ActionResult]:
        results = apply.run(
            found.plan,
            self.kube,
            self.cloud,
            events=events,
            controller=name,
            load_balancers=found.load_balancers,
            changing=partial(without_checkpoint, self.kube, self.cloud),
            stop=stop,
        )
        results = [result for result in results if not result.waits]
        self.safeguard.used(found.plan, [result.action for result in results if result.ok])
        for result in results:
            # An unchanged failure is reported once.
            if result.ok or str(result) not in self._reported:
                self._reported.add(str(result))
                self.done(result)
        return results


def _may_go_on(changes: Sequence[Action], results: Sequence[apply.ActionResult]) -> bool:
    """Whether another round may make progress: something succeeded, may succeed on retry, or was postponed."""
    if any(result.error is None or worth_another_round(result.error) for result in results):
        return True
    failed = {object_of(result.action.target) for result in results}
    return any(object_of(action.target) not in failed for action in changes)


def _changes(found: Found) -> list[Action]:
    """The actions that can be carried out now."""
    return [action for action in found.plan.changes if not action.assumed]


@contextmanager
def _lease(elector: LeaderElector | None, stop: threading.Event) -> Iterator[None]:
    """Hold the lease meanwhile, and set `stop` if it is lost. Raises Refused if another process holds it."""
    if elector is None:
        yield
        return
    if not elector.acquire(stop, within=elector.patience):
        if stop.is_set():
            raise Refused("interrupted; nothing was changed")
        raise Refused(
            f"the lease is held by {elector.holder or 'another process'}: stop that daemon, or pass "
            "--leader-elect=false if none works on this cluster"
        )
    ended = threading.Event()

    def hold() -> None:
        if not elector.hold(ended):
            stop.set()

    holder = threading.Thread(target=hold, name="lease", daemon=True)
    holder.start()
    try:
        yield
    finally:
        ended.set()
        holder.join()
        elector.release()
