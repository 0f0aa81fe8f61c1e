"""The question on a terminal before an `up` or `destroy` that would lose resources, and the effect of the answers."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.engine.cli import main
from local.engine.display.confirm import LISTED, agreed
from local.engine.events import RETAINED, Event, Prelude, StepDone, StepStarted
from local.engine.steps.planner import Op
from tests.local.engine.display.test_display_terminal import ROOT, Emulated, engine, on_a_terminal
from tests.local.engine.shown_events import resource, step
from tests.waiting import eventually

WEB = resource("web")


def deletion(name: str = "web", **more: Any) -> StepDone:
    return StepDone(replace(step(Op.DELETE, resource(name), None), **more), True)


def asked(
    monkeypatch: pytest.MonkeyPatch, answers: str, *events: Event, operation: str = "preview"
) -> tuple[bool, str]:
    """The decision after a preview with these events, and the output; `details` shows a word."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
    out = io.StringIO()
    events = (Prelude(operation, "dev", {}), *events)
    decision = agreed(events, out, colour=False, details=lambda: print("ALL OF IT", file=out))
    return decision, out.getvalue()


@pytest.mark.parametrize(
    ("answers", "decision"), [("yes\n", True), ("Y\n", True), ("no\n", False), ("n\n", False), ("", False)]
)
def test_only_a_yes_lets_a_deletion_happen(monkeypatch: pytest.MonkeyPatch, answers: str, decision: bool) -> None:
    assert asked(monkeypatch, answers, deletion())[0] is decision


def test_the_question_names_the_resources_that_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = StepDone(step(Op.REPLACE, resource("api"), resource("api")), True)

    _, shown = asked(monkeypatch, "no\n", deletion(), replaced)

    assert shown.splitlines() == [
        "This replaces 1 existing resource and deletes 1:",
        " -  cloud:m:Thing web",
        " +- cloud:m:Thing api",
        "Do you want to perform this update? [yes/no/details] ",
    ]


def test_the_question_is_repeated_after_the_details(monkeypatch: pytest.MonkeyPatch) -> None:
    decision, shown = asked(monkeypatch, "details\nperhaps\nyes\n", deletion(), operation="destroy")

    assert decision
    assert shown.count("ALL OF IT") == 1
    assert shown.count("Do you want to perform this destroy?") == 3


def test_the_question_names_the_first_of_many_resources_and_counts_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shown = asked(monkeypatch, "no\n", *(deletion(f"web-{number}") for number in range(LISTED + 3)))

    assert f"This deletes {LISTED + 3} existing resources:\n" in shown
    assert "    … and 3 more\n" in shown


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(StepDone(step(Op.CREATE, None, WEB), True), id="a creation"),
        pytest.param(StepDone(step(Op.UPDATE, WEB, WEB), True), id="an update in place"),
        pytest.param(deletion(note=RETAINED), id="what is only forgotten"),
        pytest.param(StepDone(step(Op.DELETE, replace(WEB, custom=False), None), True), id="a component"),
        pytest.param(
            StepDone(step(Op.DELETE, resource("api", "pulumi:providers:kubernetes"), None), True), id="a provider"
        ),
        pytest.param(
            StepDone(step(Op.DELETE, resource("web", outputs={"__simulated": True}), None), True), id="a simulated one"
        ),
    ],
)
def test_a_run_that_loses_nothing_needs_no_confirmation(monkeypatch: pytest.MonkeyPatch, event: Event) -> None:
    assert asked(monkeypatch, "", event) == (True, "")


def test_resources_that_a_refresh_found_gone_need_no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = StepStarted(step(Op.REFRESH, WEB, WEB), True)

    assert asked(monkeypatch, "", reading, deletion()) == (True, "")


# The engine's command line on a terminal.

PROGRAM = """
import pulumi
from confirmed_things import Thing

for name in pulumi.Config().require_object("names"):
    Thing(name)
"""
THINGS = """
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class ThingProvider(ResourceProvider):
    def create(self, props):
        return CreateResult("id", props)


class Thing(Resource, module="cloud", name="Thing"):
    def __init__(self, name):
        super().__init__(ThingProvider(), name, {})
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose stack has two things; its next `up` would delete one."""
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE", raising=False)
    (tmp_path / "Pulumi.yaml").write_text("name: things\nruntime: python\n")
    (tmp_path / "confirmed_things.py").write_text(THINGS)
    (tmp_path / "__main__.py").write_text(PROGRAM)
    configure(tmp_path, '["kept", "dropped"]')
    where = ["--stack", "dev", "--cwd", str(tmp_path), "--state", str(tmp_path / "state")]
    assert main(["up", *where], io.StringIO()) == 0
    configure(tmp_path, '["kept"]')
    return tmp_path


def configure(project: Path, names: str) -> None:
    (project / "Pulumi.dev.yaml").write_text(f"config: {{'things:names': {names}}}\n")


def things(project: Path) -> set[str]:
    state = (project / "state" / "stacks" / "dev" / "state.json").read_text()
    return {name for name in ("kept", "dropped") if f"cloud:Thing::{name}" in state}


@pytest.fixture
def terminal() -> Iterator[Emulated]:
    emulated = Emulated(120, 40)
    yield emulated
    emulated.close()


def type_line(terminal: Emulated, text: str) -> None:
    os.write(terminal.master, f"{text}\n".encode())


@pytest.mark.engine
def test_an_update_that_deletes_needs_confirmation_and_no_changes_nothing(project: Path, terminal: Emulated) -> None:
    process = on_a_terminal(terminal, engine(project, "up"))
    shown = terminal.wait_for("[yes/no/details]")
    assert "This deletes 1 existing resource:\n -  pulumi-python:dynamic/cloud:Thing dropped\n" in shown
    assert not terminal.screen.cursor.hidden

    type_line(terminal, "no")

    assert process.wait(60) == 1
    assert "Updating" not in terminal.wait_for("error: declined: nothing was changed")
    assert things(project) == {"kept", "dropped"}


@pytest.mark.engine
def test_details_of_an_update_are_its_preview_and_a_yes_carries_it_out(project: Path, terminal: Emulated) -> None:
    process = on_a_terminal(terminal, engine(project, "up"))
    terminal.wait_for("[yes/no/details]")

    type_line(terminal, "details")
    terminal.wait_for("Previewing update (dev):", "dropped delete", "- 1 to delete")
    eventually(lambda: terminal.text().count("[yes/no/details]") == 2, "it is asked again")
    type_line(terminal, "yes")

    assert process.wait(60) == 0
    terminal.wait_for("Updating (dev):", "- 1 deleted")
    assert things(project) == {"kept"}


@pytest.mark.engine
def test_a_destroy_needs_confirmation_before_the_first_deletion(project: Path, terminal: Emulated) -> None:
    process = on_a_terminal(terminal, engine(project, "destroy"))
    terminal.wait_for("This deletes 2 existing resources:", "Do you want to perform this destroy? [yes/no/details]")
    assert things(project) == {"kept", "dropped"}

    type_line(terminal, "yes")

    assert process.wait(60) == 0
    assert things(project) == set()


@pytest.mark.engine
def test_ctrl_c_at_the_question_means_no(project: Path, terminal: Emulated) -> None:
    process = on_a_terminal(terminal, engine(project, "destroy"))
    terminal.wait_for("[yes/no/details]")

    process.send_signal(signal.SIGINT)

    assert process.wait(60) == 1
    terminal.wait_for("\nerror: declined: nothing was changed")
    assert things(project) == {"kept", "dropped"}


@pytest.mark.engine
@pytest.mark.parametrize("options", [["--yes"], ["--json"], ["--skip-preview"]])
def test_with_yes_no_question_is_asked(project: Path, terminal: Emulated, options: list[str]) -> None:
    process = on_a_terminal(terminal, engine(project, "up", *options))

    assert process.wait(60) == 0
    assert things(project) == {"kept"}


@pytest.mark.engine
def test_without_a_terminal_nothing_is_asked(project: Path) -> None:
    process = subprocess.run(engine(project, "up"), cwd=ROOT, stdin=subprocess.DEVNULL, timeout=60, check=False)

    assert process.returncode == 0
    assert things(project) == {"kept"}
