"""What a run tells while it goes: events, and their JSON form, which is Pulumi's engine events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from local.engine.planner import Op
from local.engine.policy_host import Finding
from local.engine.provider import PropertyDiff
from local.engine.resource import ResourceState, to_masked_json
from local.engine.values import PropertyMap

Json = Any
SHORTEST_SECRET: Final = 6


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
    """A word for people, such as `retained`."""

    @property
    def resource(self) -> ResourceState:
        """Whichever state tells most."""
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
    """A step begins (`planning`: it would)."""

    step: StepInfo
    planning: bool


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step ended well. `seconds` it took."""

    step: StepInfo
    planning: bool
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class StepFailed:
    """A step failed; a Diagnostic says why."""

    step: StepInfo


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message for people. `urn` may be empty. An `ephemeral` one is progress, worth nothing after the run."""

    severity: str
    message: str
    urn: str = ""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """A policy found something, or could not be evaluated."""

    finding: Finding


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


Event = Prelude | StepStarted | StepDone | StepFailed | Diagnostic | PolicyEvent | Summary
Sink = Callable[[Event], None]


def without_texts(sink: Sink, texts: Iterable[str]) -> Sink:
    """A sink in front of another, which takes secret texts out of whatever providers, programs and policies say.

    Values are masked where they are shown; this is for a token in the middle of a message. Short texts are left: they
    would be found in half of the words.
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
            event = PolicyEvent(replace(event.finding, message=clean(event.finding.message)))
        sink(event)

    return emit


def to_json(event: Event, sequence: int, timestamp: int) -> Json:
    """One engine event as Pulumi writes it. `timestamp` is in seconds since 1970."""
    return {"sequence": sequence, "timestamp": timestamp} | _body(event)


def _body(event: Event) -> Json:
    if isinstance(event, Prelude):
        return {"preludeEvent": {"config": dict(event.config)}}
    if isinstance(event, StepStarted):
        return {"resourcePreEvent": {"metadata": _metadata(event.step), "planning": event.planning}}
    if isinstance(event, StepDone):
        return {"resOutputsEvent": {"metadata": _metadata(event.step), "planning": event.planning}}
    if isinstance(event, StepFailed):
        return {"resOpFailedEvent": {"metadata": _metadata(event.step), "status": 0, "steps": 0}}
    if isinstance(event, Diagnostic):
        body = {"message": event.message + "\n", "color": "never", "severity": event.severity}
        optional: Json = {"urn": event.urn, "ephemeral": event.ephemeral}
        return {"diagnosticEvent": {k: v for k, v in optional.items() if v} | body}
    if isinstance(event, PolicyEvent):
        found = event.finding
        return {
            "policyEvent": {
                "resourceUrn": found.urn,
                "message": found.message,
                "color": "never",
                "policyName": found.policy,
                "policyPackName": found.pack,
                "policyPackVersion": found.version,
                "policyPackVersionTag": found.version,
                "enforcementLevel": found.level,
            }
        }
    return {
        "summaryEvent": {
            "maybeCorrupt": False,
            "durationSeconds": round(event.seconds),
            "resourceChanges": {str(op): count for op, count in event.changes.items()},
            "policyPacks": dict(event.policy_packs),
            "isPreview": event.planning,
        }
    }


def _metadata(step: StepInfo) -> Json:
    detailed = {path: {"diffKind": str(d.kind), "inputDiff": d.input_diff} for path, d in step.detailed.items()}
    optional: Json = {
        "keys": list(step.keys),
        "diffs": sorted({path.split(".")[0].split("[")[0] for path in step.detailed}),
        "detailedDiff": detailed,
        "provider": step.resource.provider,
    }
    return {
        "op": str(step.op),
        "urn": step.urn,
        "type": step.type,
        "old": to_masked_json(step.old) if step.old else None,
        "new": to_masked_json(step.new) if step.new else None,
        "logical": step.op not in (Op.CREATE_REPLACEMENT, Op.DELETE_REPLACED),
    } | {k: v for k, v in optional.items() if v}
