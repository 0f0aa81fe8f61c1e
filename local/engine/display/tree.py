"""The known state of each resource during a run, as a tree: its parent, its step and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from local.engine.display.words import UNCHANGING, takes_time
from local.engine.events import Diagnostic, Event, PolicyEvent, Prelude, StepDone, StepFailed, StepInfo, StepStarted
from local.engine.steps.planner import Op
from local.plugins.urn import STACK_TYPE, name_of, type_of

_OF_THE_OLD: Final = (Op.DELETE_REPLACED, Op.DISCARD_REPLACED)
"""Steps of replaced resources, which share their URN with the successor's."""


class Stage(Enum):
    """The progress of a resource."""

    UNTOUCHED = "untouched"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class Row:
    """A resource. `began` is of the tree's clock; `seconds` is the duration of its step."""

    urn: str
    parent: str = ""
    step: StepInfo | None = None
    stage: Stage = Stage.UNTOUCHED
    planning: bool = False
    refreshing: bool = False
    """Whether its step only reads it."""
    began: float = 0
    seconds: float = 0
    message: str = ""
    """Its last progress message: what it waits for."""
    problems: list[Diagnostic] = field(default_factory=list)
    messages: int = 0
    """The number of its messages for the end besides its problems."""
    changed: int = 0
    """The number of the last event that changed it."""

    @property
    def type(self) -> str:
        return type_of(self.urn)

    @property
    def name(self) -> str:
        return name_of(self.urn)

    @property
    def is_same(self) -> bool:
        """Whether it is unchanged."""
        return self.stage is not Stage.FAILED and (self.step is None or self.step.op in UNCHANGING)


class Tree:
    """The resources of a run, in the order of their first event."""

    def __init__(self) -> None:
        self.operation = ""
        self.stack = ""
        self.rows: dict[str, Row] = {}
        self.findings: list[PolicyEvent] = []
        self.unplaced: list[Diagnostic] = []
        """Problems of the run itself, reported before the stack's first event."""
        self.said: dict[str, list[Diagnostic]] = {}
        """The messages for the end, by URN."""
        self._events = 0

    def take(self, event: Event, now: float) -> None:
        """Handle an event. `now`: seconds of any monotonic clock."""
        self._events += 1
        if isinstance(event, Prelude):
            self.operation, self.stack = event.operation, event.stack
        elif isinstance(event, StepStarted | StepDone | StepFailed):
            if not event.step.hidden:
                self._step(event, now)
        elif isinstance(event, Diagnostic):
            self._said(event)
        elif isinstance(event, PolicyEvent):
            self.findings.append(event)

    def _step(self, event: StepStarted | StepDone | StepFailed, now: float) -> None:
        step = event.step
        row = self._row(step.urn)
        row.changed = self._events
        if parent := step.resource.parent:
            row.parent = parent
            self._row(parent)
        if isinstance(event, StepStarted):
            row.planning = event.planning
            # An `up --refresh` reads first; that part is shown as in a refresh.
            row.refreshing = step.op is Op.REFRESH
            # The old resource's deletion is part of its replacement, whose row then returns.
            if not (step.op in _OF_THE_OLD and row.stage is Stage.DONE):
                row.step = step
            if takes_time(event) or step.op in (Op.REFRESH, Op.READ):
                row.stage, row.began, row.message = Stage.RUNNING, now, ""
        elif isinstance(event, StepFailed):
            row.step, row.stage, row.message = step, Stage.FAILED, ""
        else:
            row.stage, row.planning, row.message = Stage.DONE, event.planning, ""
            if row.step is None or step.op not in _OF_THE_OLD or row.step.op in _OF_THE_OLD:
                row.step, row.seconds = step, event.seconds

    def _said(self, event: Diagnostic) -> None:
        problem = event.severity in ("warning", "error")
        row = self._row(event.urn) if event.urn else self._stack()
        if row is not None:
            row.changed = self._events
            if problem:
                row.problems.append(event)
            else:
                row.messages += not event.ephemeral and bool(event.message.strip())
                if row.stage is not Stage.DONE or row.type == STACK_TYPE:
                    row.message = event.message
        elif problem:
            self.unplaced.append(event)
        if not event.ephemeral and event.message.strip():
            self.said.setdefault(event.urn, []).append(event)

    def _stack(self) -> Row | None:
        return next((row for row in self.rows.values() if row.type == STACK_TYPE), None)

    def _row(self, urn: str) -> Row:
        return self.rows.setdefault(urn, Row(urn))

    def running(self) -> list[Row]:
        """The resources with a running step."""
        return [row for row in self.rows.values() if row.stage is Stage.RUNNING]

    def counts(self) -> Counter[str]:
        """How many resources are done, by operation."""
        return Counter(str(r.step.op) for r in self.rows.values() if r.stage is Stage.DONE and r.step is not None)

    def ancestors(self, row: Row) -> Iterator[Row]:
        """Its parent, the parent's parent and so on, as far as known."""
        seen = {row.urn}
        while (above := self.rows.get(row.parent)) is not None and above.urn not in seen:
            seen.add(above.urn)
            yield above
            row = above

    def ordered(self, chosen: set[str]) -> list[tuple[Row, str]]:
        """The chosen rows, parents before their children, each with the branches that lead to it."""
        children: dict[str, list[Row]] = {}
        for row in self.rows.values():
            if row.urn in chosen:
                above = next((a.urn for a in self.ancestors(row) if a.urn in chosen), "")
                children.setdefault(above, []).append(row)
        # Not recursive: the nesting of components is unlimited.
        result: list[tuple[Row, str]] = []
        open_rows = [(row, "", "") for row in reversed(children.get("", []))]
        while open_rows:
            row, branch, below = open_rows.pop()
            result.append((row, branch))
            under = children.get(row.urn, [])
            for index, child in reversed(list(enumerate(under))):
                last = index == len(under) - 1
                open_rows.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
        return result
