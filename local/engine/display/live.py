"""Shows a run on a terminal: a tree redrawn in place during the run, which remains at its end."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr
from typing import Final, TextIO

from local.engine.display import frame as display_frame
from local.engine.display.ci import heading
from local.engine.display.frame import Screen
from local.engine.display.lines import Wanted
from local.engine.display.summary import (
    Section,
    counts_section,
    diagnostics_section,
    outputs_section,
    policy_section,
)
from local.engine.display.terminal import Terminal, width_of
from local.engine.display.text import Line, Tone, line, report_failure
from local.engine.display.tree import Tree
from local.engine.display.words import title_of
from local.engine.events import Event, Prelude, Summary

DRAWN_EVERY: Final = 0.1
"""Seconds between two drawings."""
DRAWN_WITHIN: Final = 1.0
"""Seconds that a drawing may take; a terminal that accepts nothing (Ctrl-S) is not waited for."""


class LiveTree:
    """An event sink that draws. Its own thread draws, so that emitting an event never waits."""

    def __init__(
        self, stream: TextIO, wanted: Wanted, *, colour: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`stream` is a terminal's. `now`: a monotonic clock, in seconds."""
        self._terminal = Terminal(stream, colour=colour)
        self._wanted = wanted
        self._now = now
        self._lock = threading.RLock()
        self._tree = Tree()
        self._frame: Callable[[Tree, Screen, float, float], list[Line]] = _checking
        self._began = 0.0
        self._heard = False
        self._stop: threading.Event | None = None
        self._cleanup = ExitStack()
        self._lent = False
        """Whether another process has used the terminal since the last drawing."""

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, Prelude):
                self._end()
                self._terminal.say([line(f"{title_of(event.operation)} ({event.stack}):", Tone.TITLE)])
                self._begin(self._running)
            self._note(event)
            if isinstance(event, Summary):
                self._end()
                self._terminal.say([*self._tree_lines(), *self._sections(event)])

    def checking(self, event: Event) -> None:
        """Handle an event of the checking preview before an `up`: only its progress is shown."""
        with self._lock:
            if isinstance(event, Prelude):
                self._begin(_checking)
            self._note(event)
            if isinstance(event, Summary):
                # The question that follows needs the terminal.
                self._end()

    def close(self, failure: str = "") -> None:
        """Release the terminal, wherever the run is; an interrupted run's tree stays visible."""
        with self._lock:
            cut_short = self._stop is not None and self._frame is not _checking
            self._end()
            if cut_short:
                self._terminal.say([*self._tree_lines(), *_shown(diagnostics_section(self._tree.said))])
        if failure:
            report_failure(failure)

    def _begin(self, frame: Callable[[Tree, Screen, float, float], list[Line]]) -> None:
        self._tree, self._frame, self._began = Tree(), frame, self._now()
        if not self._wanted.progress:
            return
        self._stop = threading.Event()
        # Standard error would break the drawing: it is printed above.
        self._cleanup.enter_context(redirect_stderr(_Above(self._above)))
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTSTP, self._suspend)
            self._cleanup.callback(signal.signal, signal.SIGTSTP, before)
        threading.Thread(target=self._keep_drawing, args=(self._stop,), name="display", daemon=True).start()

    def _note(self, event: Event) -> None:
        self._tree.take(event, self._now())
        self._heard = True

    def _end(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = None
            self._cleanup.close()
            self._terminal.stop()

    def _suspend(self, number: int, frame: object) -> None:
        """Ctrl-Z: the shell gets the terminal with its cursor; after `fg` drawing continues below."""
        del number, frame
        # Neither the current drawing nor the first one after `fg` may overlap the shell's output.
        held = self._lock.acquire(timeout=DRAWN_WITHIN)
        self._terminal.lend()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._lent = True
        if held:
            self._lock.release()

    def _keep_drawing(self, stop: threading.Event) -> None:
        second = -1
        while not stop.wait(DRAWN_EVERY):
            with self._lock:
                now = self._now()
                if self._lent:
                    self._lent, self._heard = False, True
                    self._terminal.forget()
                # The check's line spins; the tree changes with events, and its times every second.
                if not stop.is_set() and (self._heard or self._frame is _checking or int(now) != second):
                    self._heard, second = False, int(now)
                    self._terminal.draw(self._frame(self._tree, self._screen(), now, self._began))

    def _running(self, tree: Tree, screen: Screen, now: float, began: float) -> list[Line]:
        return display_frame.running(tree, screen, now, began=began, sames=self._wanted.sames)

    def _tree_lines(self) -> list[Line]:
        return display_frame.ended(self._tree, self._screen(), diff=self._wanted.diff, sames=self._wanted.sames)

    def _sections(self, event: Summary) -> list[Line]:
        sections = [
            policy_section(event, [e.finding for e in self._tree.findings]),
            diagnostics_section(self._tree.said),
            outputs_section(event) if self._wanted.outputs else None,
            counts_section(event),
        ]
        return [*_shown(*sections), line(""), line(f"Duration: {event.seconds:.1f}s")]

    def _screen(self) -> Screen:
        size = self._terminal.size()
        # The last column stays free: a character there makes the cursor's position ambiguous.
        return Screen(size.columns - 1, size.lines, width_of)

    def _above(self, text: str) -> None:
        with self._lock:
            self._terminal.say([line(text)])


def _checking(tree: Tree, screen: Screen, now: float, began: float) -> list[Line]:
    return display_frame.checking(tree, screen, now, began=began)


def _shown(*sections: Section | None) -> list[Line]:
    return [part for s in sections if s is not None for part in (line(""), heading(s.title), *s.lines)]


class _Above(io.TextIOBase):
    """A text stream that passes on whole lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for said in lines:
            self._on_line(said)
        return len(text)
