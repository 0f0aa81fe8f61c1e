"""The dry run tells a plan when it is new, and why there is none."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from cloud_controller.cloud import CloudError, Unavailable
from cloud_controller.daemon import dry_run
from cloud_controller.daemon.dry_run import DryRun
from cloud_controller.metrics import Metrics
from cloud_controller.plan import Action, ActionKind, FieldChange, Plan

PLAN = Plan.of([Action(ActionKind.UPDATE, "node/n", "initialise", (FieldChange("spec.providerID", None, "x"),))])


class Finder:
    """Answers one plan or error after the other, the last one for ever."""

    def __init__(self, *answers: Plan | CloudError) -> None:
        self.answers = [*answers]
        self.asked = 0

    def __call__(self) -> Plan:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, CloudError):
            raise answer
        return answer


def looked(finder: Finder, times: int) -> DryRun:
    """A dry run that has looked so often, and has ended."""
    dry, stop = DryRun("node", finder, Metrics(), 0.001), threading.Event()
    dry.start(stop)
    deadline = time.monotonic() + 30
    while finder.asked < times:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    stop.set()
    assert dry.join(30)
    return dry


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What dry runs alone have logged: what other tests have started may still end."""
    return [record.getMessage() for record in caplog.records if record.name == dry_run.__name__]


def test_a_dry_run_logs_an_unchanged_plan_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    looked(Finder(PLAN), 3)

    assert said(caplog) == [
        "dry-run plan controller=node changes=1",
        "would update controller=node target=node/n plan='~  node/n: initialise'",
        "would change controller=node target=node/n field='spec.providerID: (none) -> x'",
    ]


def test_a_dry_run_logs_when_nothing_is_left_to_do(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    looked(Finder(PLAN, Plan()), 3)

    assert said(caplog)[-1] == "dry-run plan controller=node changes=0"


def test_a_dry_run_is_in_trouble_until_planning_succeeds() -> None:
    assert looked(Finder(Unavailable("down")), 1).trouble() == "Unavailable: down"
    assert looked(Finder(Unavailable("down"), PLAN), 2).trouble() is None


def test_a_dry_run_whose_thread_has_stopped_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.set())

    def bug() -> Plan:
        raise KeyError("a bug")

    dry = DryRun("node", bug, Metrics(), 1.0)
    dry.start(threading.Event())

    assert died.wait(30)
    assert dry.join(30)
    assert dry.ended() == "its thread has stopped"
