"""The live display on a terminal (an emulated one): drawn in place, cursor restored, resized, real runs on a pty."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyte
import pytest

from local.engine.display.choice import Choice, open_display
from local.engine.display.lines import Lines, Wanted
from local.engine.display.live import LiveTree
from local.engine.display.terminal import Terminal, width_of
from local.engine.display.text import line
from local.engine.events import Diagnostic, Prelude, StepDone, StepStarted
from tests.local.engine.shown_events import creating, summary
from tests.waiting import eventually

ROOT = Path(__file__).parents[4]


class Emulated:
    """A terminal emulator behind a pseudo-terminal: text written to `stream` is on its screen."""

    def __init__(self, columns: int, lines: int) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=5000)
        self._feed = pyte.ByteStream(self.screen)
        self.master, self.slave = pty.openpty()
        self.resize(columns, lines)
        self.stream = open(self.slave, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        self.received = b""
        self.processes: list[subprocess.Popen[bytes]] = []
        """The process on the terminal, which ends with it."""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def _read(self) -> None:
        # The reader closes it: another file may get its number soon after.
        with os.fdopen(self.master, "rb", buffering=0) as master, suppress(OSError):
            while data := master.read(65536):
                with self._changed:
                    self._feed.feed(data)
                    self.received += data
                    self._changed.notify_all()

    def lines(self) -> list[str]:
        """All lines, including those that have left the screen."""
        shown = [[row[column].data for column in range(self.screen.columns)] for row in self.screen.history.top]
        return [text.rstrip() for text in ["".join(row) for row in shown] + list(self.screen.display)]

    def text(self) -> str:
        return "\n".join(self.lines()).rstrip()

    def wait_for(self, *texts: str) -> str:
        """The screen once it shows each of the texts."""
        with self._changed:
            assert self._changed.wait_for(lambda: all(t in self.text() for t in texts), 60), self.text()
            return self.text()

    def wait_until(self, text: str, *, hidden: bool = False) -> None:
        """Wait until the screen shows exactly this, with the cursor hidden or not."""
        with self._changed:
            shows = self._changed.wait_for(lambda: self.text() == text and self.screen.cursor.hidden is hidden, 60)
            assert shows, (self.text(), self.screen.cursor.hidden)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.stream.close()
        os.close(self.slave)
        self._reader.join(60)


@pytest.fixture
def wide() -> Iterator[Emulated]:
    emulated = Emulated(100, 30)
    yield emulated
    emulated.close()


@contextmanager
def live(emulated: Emulated, **wanted: Any) -> Iterator[LiveTree]:
    display = LiveTree(emulated.stream, Wanted(**wanted), colour=True)
    try:
        yield display
    finally:
        display.close()


def test_lines_are_drawn_in_place_of_those_before(wide: Emulated) -> None:
    terminal = Terminal(wide.stream, colour=False)
    terminal.say([line("above")])
    terminal.draw([line("one"), line("two"), line("three")])
    terminal.draw([line("one"), line("2")])
    wide.wait_until("above\none\n2", hidden=True)

    terminal.say([line("said meanwhile")])
    wide.wait_until("above\nsaid meanwhile\none\n2", hidden=True)

    terminal.stop()
    terminal.say([line("the end")])
    wide.wait_until("above\nsaid meanwhile\nthe end")


def test_unchanged_lines_are_not_redrawn(wide: Emulated) -> None:
    terminal = Terminal(wide.stream, colour=False)
    terminal.draw([line("one")])
    wide.wait_for("one")
    before = len(wide.received)
    terminal.draw([line("one")])
    terminal.say([line("next")])
    wide.wait_for("next")
    assert wide.received[before:].count(b"one") == 1, "drawn again only below what was said"


def test_shrinking_the_window_leaves_no_remains(wide: Emulated) -> None:
    terminal = Terminal(wide.stream, colour=False)
    terminal.draw([line("x" * 90), line("y" * 90)])
    wide.wait_for("y")
    wide.resize(50, 10)
    terminal.draw([line("x" * 40), line("y" * 40)])
    wide.wait_until("x" * 40 + "\n" + "y" * 40, hidden=True)


def test_combining_and_wide_characters_are_counted_by_their_columns() -> None:
    assert [width_of(text) for text in ("abc", "é", "e\u0301", "数据", "✓")] == [3, 1, 1, 4, 1]


def test_the_tree_is_shown_during_the_run_and_stays_above_the_summary(wide: Emulated) -> None:
    web = creating("web")
    with live(wide) as display:
        display(Prelude("up", "dev", {}))
        display(StepStarted(web, False))
        display(Diagnostic("info", "waiting for 2 of 3 pods", web.urn, ephemeral=True))
        wide.wait_for("Updating (dev):", "└─ cloud:m:Thing", "creating (", "waiting for 2 of 3 pods", "1 running")
        assert wide.screen.cursor.hidden
        display(StepDone(web, False, 1.5))
        display(summary(planning=False, changes={web.op: 1}, new_outputs={"url": "x"}))
        shown = wide.wait_for("Duration: 1.0s")
    assert not wide.screen.cursor.hidden and "waiting" not in shown and "running" not in shown
    assert shown.count("web") == 1 and shown.index("created (1.50s)") < shown.index('  + url: "x"')
    assert "\nResources:\n    + 1 created\n" in shown


def test_the_preview_before_an_update_leaves_nothing_behind(wide: Emulated) -> None:
    with live(wide) as display:
        display.checking(Prelude("preview", "dev", {}))
        display.checking(StepDone(creating("web"), True))
        wide.wait_for("Previewing update (dev): 1 resource, ")
        display(Prelude("up", "dev", {}))
        display(summary(planning=False))
        assert wide.wait_for("Duration").startswith("Updating (dev):\n") and "Previewing" not in wide.text()


def test_standard_error_is_shown_above_the_tree(wide: Emulated) -> None:
    with live(wide) as display:
        display(Prelude("up", "dev", {}))
        display(StepStarted(creating("web"), False))
        wide.wait_for("1 running")
        print("a library warns", file=sys.stderr)
        shown = wide.wait_for("a library warns", "1 running")
    assert shown.index("a library warns") < shown.index("cloud:m:Thing")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_however_a_run_ends_the_cursor_is_restored_and_the_tree_stays(
    wide: Emulated, error: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    display = LiveTree(wide.stream, Wanted(), colour=True)
    with suppress(error):
        try:
            display(Prelude("up", "dev", {}))
            display(StepStarted(creating("web"), False))
            wide.wait_for("1 running")
            raise error
        finally:
            display.close("interrupted")
    assert "not finished" in wide.wait_for("not finished") and not wide.screen.cursor.hidden
    assert capsys.readouterr().err == "error: interrupted\n"


def test_without_progress_only_the_end_is_shown(wide: Emulated) -> None:
    with live(wide, progress=False) as display:
        display(Prelude("up", "dev", {}))
        display(StepStarted(creating("web"), False))
        display(StepDone(creating("web"), False, 1.0))
        display(summary(planning=False))
        wide.wait_for("Duration")
    assert b"?25l" not in wide.received and b"running" not in wide.received


def test_drawing_does_not_slow_down_a_large_run(wide: Emulated) -> None:
    with live(wide) as display:
        display(Prelude("up", "dev", {}))
        for number in range(1000):
            display(StepStarted(creating(f"node-{number}"), False))
            display(StepDone(creating(f"node-{number}"), False, 0.1))
        display(summary(planning=False))
        shown = wide.wait_for("Duration")
    frames = wide.received.count(b"?2026h")
    assert shown.count("node-") == 1000 and frames < 500, "many events are one drawing"


class SaysItIsATerminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    encoding = "utf-8"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm"}, LiveTree),
        ({"TERM": "dumb"}, Lines),
        ({}, Lines),
        ({"TERM": "xterm", "GITHUB_ACTIONS": "true"}, Lines),
    ],
)
def test_a_terminal_that_can_be_drawn_on_gets_the_tree(environment: dict[str, str], expected: type) -> None:
    assert isinstance(open_display(Choice(ROOT), SaysItIsATerminal(), environment), expected)


@pytest.mark.parametrize(
    ("colour", "environment", "expected"),
    [("auto", {}, True), ("auto", {"NO_COLOR": "1"}, False), ("always", {"NO_COLOR": "1"}, True), ("never", {}, False)],
)
def test_colours_depend_on_the_option_then_no_color_then_the_terminal(
    wide: Emulated, colour: str, environment: dict[str, str], expected: bool
) -> None:
    display = open_display(Choice(ROOT, colour=colour), wide.stream, {"TERM": "xterm", **environment})
    display(Prelude("up", "dev", {}))
    display(StepDone(creating("web"), False, 1.0))
    display(summary(planning=False))
    display.close()
    wide.wait_for("Duration")
    assert (b"\x1b[32m" in wide.received) is expected


PROGRAM = """
import time
import pulumi

class Group(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("test:index:Group", name, {}, opts)

for number in range(12):
    Group(f"member-{number}", pulumi.ResourceOptions(parent=Group(f"group-{number}")))
pulumi.export("token", pulumi.Output.secret("hunter2"))
"""
ASLEEP = """
open("asleep", "w").close()
time.sleep(600)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: shown\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    return tmp_path


def engine(project: Path, command: str, *more: str) -> list[str]:
    where = ["--stack", "dev", "--cwd", str(project), "--state", str(project / "state")]
    return [sys.executable, "-m", "local.engine", command, *where, *more]


ENVIRONMENT = {**{k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "GITHUB_ACTIONS", "GITLAB_CI")}}


def on_a_terminal(emulated: Emulated, arguments: list[str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        arguments,
        cwd=ROOT,
        stdin=emulated.slave,
        stdout=emulated.slave,
        stderr=emulated.slave,
        env={**ENVIRONMENT, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    emulated.processes.append(process)
    return process


@pytest.mark.engine
@pytest.mark.parametrize(("columns", "lines"), [(100, 50), (40, 12), (20, 4)])
def test_a_real_preview_fits_a_terminal_of_any_size(project: Path, columns: int, lines: int) -> None:
    emulated = Emulated(columns, lines)
    process = on_a_terminal(emulated, engine(project, "preview"))
    assert process.wait(60) == 0
    shown = emulated.wait_for("Duration")
    tree = shown[: shown.index("Outputs:")]
    assert shown.startswith("Previewing update") and not emulated.screen.cursor.hidden
    assert "+ 25 to create" in shown and "hunter2" not in shown
    if columns == 100:
        assert sum(" ├─ test:index:Group" in text or " └─ test:index:Group" in text for text in tree.splitlines()) == 24
        assert re.search(
            r"\n \+  [├└]─ test:index:Group {5}group-11 {3}create\n \+  .  └─ .+Group  member-11  create\n", tree
        )
    assert sum(text.startswith(" + ") for text in tree.splitlines()) == 25, "a line a resource"
    emulated.close()


@pytest.mark.engine
def test_ctrl_c_restores_the_terminal(project: Path, wide: Emulated) -> None:
    (project / "__main__.py").write_text(PROGRAM + ASLEEP)
    process = on_a_terminal(wide, engine(project, "preview"))
    eventually((project / "asleep").exists, "the program runs")
    wide.wait_for("Resources: none yet")
    assert wide.screen.cursor.hidden
    # The first lets running steps finish, and this program never does.
    process.send_signal(signal.SIGINT)
    wide.wait_for("Ctrl-C again ends at once\nResources: none yet")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 8
    wide.wait_for("error: interrupted; the next run continues from here")
    assert not wide.screen.cursor.hidden


@pytest.mark.engine
def test_repeated_sigterms_act_as_a_single_ctrl_c(project: Path, wide: Emulated) -> None:
    (project / "__main__.py").write_text(PROGRAM + ASLEEP)
    process = on_a_terminal(wide, engine(project, "preview"))
    eventually((project / "asleep").exists, "the program runs")
    wide.wait_for("Resources: none yet")
    process.send_signal(signal.SIGTERM)
    wide.wait_for("Ctrl-C again ends at once\nResources: none yet")
    # `make` forwards it to a process that has already received it as a member of the group.
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 8
    shown = wide.wait_for("the next run continues from here")
    assert not wide.screen.cursor.hidden and "Diagnostics:\n  the run:\n    error: interrupted" in shown


@pytest.mark.engine
def test_a_suspended_run_releases_the_terminal_and_continues_below_the_shells_output(
    project: Path, wide: Emulated
) -> None:
    (project / "__main__.py").write_text(PROGRAM + ASLEEP)
    process = on_a_terminal(wide, engine(project, "preview"))
    eventually((project / "asleep").exists, "the program runs")
    wide.wait_for("Resources: none yet")
    process.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    wide.stream.write("$ ls\r\n$ fg\r\n")
    wide.stream.flush()
    wide.wait_for("$ fg")
    assert not wide.screen.cursor.hidden

    process.send_signal(signal.SIGCONT)
    shown = wide.wait_for("$ fg\nResources: none yet")
    assert shown.count("Resources: none yet") == 2 and wide.screen.cursor.hidden


@pytest.mark.engine
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_closes_the_pipe_does_not_interrupt_the_run(project: Path, options: list[str]) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        engine(project, "up", *options), cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    os.close(writer)
    os.close(reader)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    state = (project / "state" / "stacks" / "dev" / "state.json").read_text()
    assert state.count("::member-") >= 12, "it was done to the end"
