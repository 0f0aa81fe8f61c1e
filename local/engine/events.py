"""The events of a run. display*.py and events_json.py render them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final
from urllib.parse import unquote

from local.engine.policies.host import Finding
from local.engine.stack.resource import ResourceState
from local.engine.steps.planner import Op
from local.plugins import paths
from local.plugins.provider import PropertyDiff
from local.plugins.values import PropertyMap

SHORTEST_SECRET: Final = 6
UNTARGETED: Final = "no target"
"""The note of a step that does nothing because of `--target`."""
RETAINED: Final = "retained"
"""The note of a deletion that only forgets."""


@dataclass(frozen=True, slots=True)
class StepInfo:
    """One step of one resource. `old` is None on create, `new` on delete."""

    op: Op
    urn: str
    type: str
    old: ResourceState | None = None
    new: ResourceState | None = None
    keys: tuple[str, ...] = ()
    """Why it is replaced, as property paths."""
    detailed: Mapping[str, PropertyDiff] = field(default_factory=dict)
    hidden: bool = False
    """A default provider: neither shown nor counted."""
    note: str = ""
    """A remark for people, such as `retained`."""

    @property
    def diffs(self) -> list[str]:
        """The properties that differ, by their first key, sorted."""
        return sorted({str(steps[0]) for path in self.detailed if (steps := paths.named(path))})

    @property
    def simulated(self) -> bool:
        """Whether nothing real happens: the resource is only recorded."""
        return any(state.simulated for state in (self.old, self.new) if state is not None)

    @property
    def resource(self) -> ResourceState:
        """The new state where there is one, else the old."""
        state = self.new or self.old
        assert state is not None
        return state


@dataclass(frozen=True, slots=True)
class Prelude:
    """A run begins."""

    operation: str
    stack: str
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step starts (`planning`: it would)."""

    step: StepInfo
    planning: bool


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step succeeded after `seconds`."""

    step: StepInfo
    planning: bool
    seconds: float = 0


class Status(IntEnum):
    """The result of a failed step, with Pulumi's numbers."""

    NOTHING = 0
    PARTIAL = 1
    """The object exists, but is not as it should be."""
    UNKNOWN = 2
    """Its outcome is unknown."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step failed; a Diagnostic says why."""

    step: StepInfo
    status: Status = Status.NOTHING


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message for people. `urn` may be empty. An `ephemeral` one is progress, worth nothing after the run."""

    severity: str
    message: str
    urn: str = ""
    ephemeral: bool = False
    position: str = ""
    """Where the program registers the resource, if known: `project:///PATH#LINE`."""

    @property
    def place(self) -> str:
        """The position for people: PATH:LINE, or empty."""
        return place_of(self.position)


@dataclass(frozen=True, slots=True)
class PolicyLoad:
    """Policy packs start to load."""


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """A policy found something or could not be evaluated. `remediated`: what it changed, before and after."""

    finding: Finding
    remediated: tuple[PropertyMap, PropertyMap] | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A run ended. `changes` counts resources by operation; `outputs` are the stack's before and after."""

    planning: bool
    changes: Mapping[Op, int]
    seconds: float
    failed: bool
    old_outputs: PropertyMap
    new_outputs: PropertyMap
    policy_packs: Mapping[str, str] = field(default_factory=dict)
    maybe_corrupt: bool = False
    """Whether operations with unknown outcome remain."""


Event = Prelude | StepStarted | StepDone | StepFailed | Diagnostic | PolicyLoad | PolicyEvent | Summary
Sink = Callable[[Event], None]


def place_of(position: str) -> str:
    """`project:///PATH#LINE` for people: PATH:LINE."""
    return unquote(position).removeprefix("project:///").replace("#", ":")


def without_texts(sink: Sink, texts: Iterable[str]) -> Sink:
    """A sink in front of another that removes secret texts from the messages of providers, programs and policies.

    Values are masked where they are shown; this is for a token in the middle of a message. Short texts are kept: they
    would match parts of ordinary words.
    """
    hidden = sorted({t for t in texts if len(t) >= SHORTEST_SECRET}, key=len, reverse=True)

    def clean(message: str) -> str:
        for text in hidden:
            message = message.replace(text, "[secret]")
        return message

    def emit(event: Event) -> None:
        if isinstance(event, Diagnostic):
            event = replace(event, message=clean(event.message))
        elif isinstance(event, PolicyEvent):
            event = replace(event, finding=replace(event.finding, message=clean(event.finding.message)))
        sink(event)

    return emit
