"""Shows a run as lines, each complete in itself: for files, pipes, CI logs and simple terminals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local.engine.display.ci import Log, heading
from local.engine.display.summary import (
    Section,
    counts_section,
    diagnostics_section,
    labelled,
    outputs_section,
    policy_section,
)
from local.engine.display.text import Line, Output, Part, Tone, indented, line, report_failure
from local.engine.display.values import details, plan_of
from local.engine.display.words import UNCHANGING, note_of, outcome, takes_time, title_of, word_of
from local.engine.events import (
    Diagnostic,
    Event,
    PolicyEvent,
    PolicyLoad,
    Prelude,
    StepDone,
    StepFailed,
    StepInfo,
    StepStarted,
    Summary,
)
from local.engine.steps.planner import Op
from local.plugins.urn import name_of, type_of

QUIET_SECONDS: Final = 30.0
"""A running step without output for this long is reported, with what it waits for."""
REPORTED_AT_ONCE: Final = 10
"""How many running steps are named at a time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to show of a run. `diff`: also the properties of created resources; `sames`: also unchanged resources."""

    diff: bool = False
    sames: bool = False
    outputs: bool = True
    progress: bool = True


@dataclass(slots=True)
class _Running:
    step: StepInfo
    began: float
    reported: float
    message: str = ""


class Lines:
    """An event sink that writes lines."""

    def __init__(
        self, out: Output, log: Log, wanted: Wanted | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`now`: a monotonic clock, in seconds."""
        self._out = out
        self._log = log
        self._wanted = wanted or Wanted()
        self._now = now
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._findings: list[PolicyEvent] = []
        self._problems: dict[str, list[Diagnostic]] = {}
        self._positions: dict[str, str] = {}
        self._told: set[str] = set()
        self._buried = False
        """Whether the end must report the problems (again): the run was interrupted, or other output followed them."""
        self._previewing = False
        self._reading: set[str] = set()
        """The resources being refreshed: their step only reads."""
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None

    def __call__(self, event: Event) -> None:
        with self._lock:
            lines = self._lines(event)
            if lines and self._problems and not isinstance(event, Diagnostic):
                self._buried = True
            self._write(lines)
            if self._running and self._watch is None and self._wanted.progress:
                self._watch = threading.Thread(target=self._keep_reporting, name="display", daemon=True)
                self._watch.start()

    def checking(self, event: Event) -> None:
        """Ignore an event of the checking preview before an `up`."""

    def close(self, failure: str = "") -> None:
        """Stop reporting running steps; the reason for an interruption goes to standard error."""
        self._closed.set()
        if self._watch is not None:
            self._watch.join()
        if failure:
            self._write(self._log.error("the run", failure, ""))
            report_failure(failure, self._log.text)

    def report_running(self) -> None:
        """Report what each step waits for that has been running for long without output."""
        with self._lock:
            now = self._now()
            quiet = [r for r in self._running.values() if now - r.reported >= QUIET_SECONDS]
            lines = []
            for running in quiet[:REPORTED_AT_ONCE]:
                message = f": {running.message}" if running.message else ""
                word = f"still {word_of(running.step.op).doing} ({now - running.began:.0f}s){message}"
                lines.append(self._log.text(_step(running.step, word)))
            if len(quiet) > REPORTED_AT_ONCE:
                lines.append(self._log.text(line(f"    and {len(quiet) - REPORTED_AT_ONCE} more")))
            for running in quiet:
                running.reported = now
            self._write(lines)

    def _keep_reporting(self) -> None:
        while not self._closed.wait(QUIET_SECONDS / 3):
            self.report_running()

    def _write(self, lines: list[str]) -> None:
        self._out.write("".join(f"{text}\n" for text in lines))

    def _lines(self, event: Event) -> list[str]:
        if isinstance(event, Prelude):
            self._previewing = event.operation == "preview"
            return [self._log.text(line(f"{title_of(event.operation)} ({event.stack}):", Tone.TITLE))]
        if isinstance(event, StepStarted):
            return self._started(event)
        if isinstance(event, StepDone):
            self._running.pop(event.step.urn, None)
            return self._done(event)
        if isinstance(event, StepFailed):
            self._running.pop(event.step.urn, None)
            return [] if event.step.hidden else [self._log.text(_step(event.step, "failed"))]
        if isinstance(event, Diagnostic):
            return self._diagnostic(event)
        if isinstance(event, PolicyEvent):
            self._findings.append(event)
            return []
        if isinstance(event, PolicyLoad):
            return []
        return self._summary(event)

    def _started(self, event: StepStarted) -> list[str]:
        step = event.step
        self._positions[step.urn] = step.resource.source_position
        # An `up --refresh` reads first; that part is shown as in a refresh.
        (self._reading.add if step.op is Op.REFRESH else self._reading.discard)(step.urn)
        if not takes_time(event):
            return []
        now = self._now()
        self._running[step.urn] = _Running(step, began=now, reported=now)
        return [self._log.text(_step(step, word_of(step.op).doing))]

    def _done(self, event: StepDone) -> list[str]:
        step = event.step
        refreshing = step.urn in self._reading
        plan = plan_of(step, refreshing=refreshing)
        if step.hidden or (step.op in UNCHANGING and not plan and not self._wanted.sames):
            return []
        did = outcome(step, event.seconds, planning=event.planning, refreshing=refreshing)
        title = _step(step, f"{did} {note_of(step, refreshing=refreshing)}".rstrip())
        under = details(step, planning=event.planning, refreshing=refreshing, diff=self._wanted.diff)
        if not under:
            return [self._log.text(title)]
        shown = [self._log.text(parts) for parts in indented(under, 6)]
        return [*self._log.begin(title, "diff", open=True), *shown, *self._log.end()]

    def _diagnostic(self, event: Diagnostic) -> list[str]:
        place = f" ({event.place})" if event.place else ""
        where = f"{type_of(event.urn)} {name_of(event.urn)}{place}: " if event.urn else ""
        if event.position:
            self._positions[event.urn] = event.position
        if event.ephemeral:
            return self._waiting(event, where)
        first, *rest = event.message.splitlines() or [""]
        if event.severity not in ("warning", "error") and not (self._previewing and event.urn):
            shown = [f"      {where}{first}", *(f"      {'  ' if where else ''}{text}" for text in rest)]
            return [self._log.text(line(text)) for text in shown] if event.message else []
        self._problems.setdefault(event.urn, []).append(event)
        self._buried = self._buried or bool(rest)
        # A preview takes seconds: its problems are listed once, at the end. And ten resources with one problem, such as
        # a cloud that does not answer, do not need a line each.
        if self._previewing or event.message in self._told:
            self._buried = True
            return []
        self._told.add(event.message)
        return [self._log.text((Part("    "), *labelled(event.severity, f"{where}{first}")))]

    def _waiting(self, event: Diagnostic, where: str) -> list[str]:
        """What a step waits for: reported at once the first time, later only after a long silence."""
        running = self._running.get(event.urn)
        if running is not None:
            first, running.message = not running.message, event.message
            if not first:
                return []
            running.reported = self._now()
        return [self._log.text(line(f"      {where}{text}")) for text in event.message.splitlines()]

    def _summary(self, event: Summary) -> list[str]:
        policies = policy_section(event, [e.finding for e in self._findings])
        sections = [policies]
        # Packs that all passed take a line each and hide nothing.
        if self._buried or self._findings:
            sections.append(diagnostics_section(self._problems))
        if self._wanted.outputs:
            sections.append(outputs_section(event))
        lines = [text for section in sections if section is not None for text in self._section(section)]
        lines += self._errors()
        if counts := counts_section(event):
            lines += ["", *(self._log.text(parts) for parts in [heading(counts.title), *counts.lines])]
        return [*lines, "", f"Duration: {event.seconds:.1f}s"]

    def _section(self, section: Section) -> list[str]:
        shown = [self._log.text(parts) for parts in section.lines]
        begin = self._log.begin(heading(section.title), section.title, open=section.bad)
        return ["", *begin, *shown, *self._log.end()]

    def _errors(self) -> list[str]:
        """The errors in the form that a CI system links to the source; one shared by several resources appears once."""
        found: dict[str, tuple[str, str]] = {}
        for urn, problems in self._problems.items():
            for diagnostic in problems:
                if diagnostic.severity == "error":
                    found.setdefault(diagnostic.message, (name_of(urn) if urn else "the run", urn))
        for finding in [e.finding for e in self._findings]:
            if finding.level == "mandatory":
                message = "\n".join(dict.fromkeys([finding.description, finding.message]))
                found.setdefault(message, (f"{finding.policy}: {name_of(finding.urn)}", finding.urn))
        return [
            text
            for message, (title, urn) in found.items()
            for text in self._log.error(title, message, self._positions.get(urn, ""))
        ]


def _step(step: StepInfo, word: str) -> Line:
    known = word_of(step.op)
    return (Part(f" {known.symbol:<2}", known.tone), Part(f" {step.type} {name_of(step.urn)} {word}"))
