"""Events as Pulumi's engine events: what `--json` writes, an apitype.EngineEvent a line."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from local.engine.display.text import Output
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
)
from local.engine.policies.host import Finding
from local.engine.stack.resource import ResourceState
from local.engine.steps.planner import Op
from local.plugins.json_values import mask
from local.plugins.values import UNKNOWN
from local.plugins.wire import UNKNOWN_TEXT

Json = Any

_PARTS = (
    Op.CREATE_REPLACEMENT,
    Op.DELETE_REPLACED,
    Op.READ_REPLACEMENT,
    Op.IMPORT_REPLACEMENT,
    Op.DISCARD_REPLACED,
)
"""Steps that are each part of a replacement."""


class JsonLines:
    """An event sink that writes one JSON object a line, numbered from 0; the last is a cancelEvent, as the CLI's is."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._sequence = 0
        self._steps = 0
        """The number of steps done."""
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._write(body_of(event, self._steps))
            self._steps += isinstance(event, StepDone)

    def checking(self, event: Event) -> None:
        """Handle an event of the checking preview before an `up`: it is not written."""

    def close(self, failure: str = "") -> None:
        """No more events follow."""
        if failure:
            self(Diagnostic("error", failure))
        with self._lock:
            self._write({"cancelEvent": {}})

    def _write(self, body: Json) -> None:
        event = {"sequence": self._sequence, "timestamp": int(time.time())} | body
        self._sequence += 1
        self._out.write(json.dumps(event) + "\n")


def body_of(event: Event, steps: int = 0) -> Json:
    """The content of the engine event, without number and time; `steps`: how many were done before."""
    if isinstance(event, Prelude):
        return {"preludeEvent": {"config": dict(event.config)}}
    if isinstance(event, StepStarted):
        return {"resourcePreEvent": {"metadata": _metadata(event.step), "planning": event.planning}}
    if isinstance(event, StepDone):
        return {"resOutputsEvent": {"metadata": _metadata(event.step), "planning": event.planning}}
    if isinstance(event, StepFailed):
        return {"resOpFailedEvent": {"metadata": _metadata(event.step), "status": int(event.status), "steps": steps}}
    if isinstance(event, Diagnostic):
        return {"diagnosticEvent": _diagnostic(event)}
    if isinstance(event, PolicyLoad):
        return {"policyLoadEvent": {}}
    if isinstance(event, PolicyEvent):
        return _policy(event)
    return {
        "summaryEvent": {
            "maybeCorrupt": event.maybe_corrupt,
            "durationSeconds": round(event.seconds),
            # The CLI counts a replacement as a whole, not its steps.
            "resourceChanges": {str(op): n for op, n in event.changes.items() if op is not Op.DELETE_REPLACED},
            # The one name of the format that begins with a capital.
            "PolicyPacks": dict(event.policy_packs),
            "isPreview": event.planning,
        }
    }


def _diagnostic(event: Diagnostic) -> Json:
    prefix = f"{event.severity}: " if event.severity in ("warning", "error") else ""
    optional: Json = {"urn": event.urn, "prefix": prefix, "ephemeral": event.ephemeral}
    body = {"message": event.message + "\n", "color": "never", "severity": event.severity}
    return {k: v for k, v in optional.items() if v} | body


def _policy(event: PolicyEvent) -> Json:
    found: Finding = event.finding
    about: Json = {
        "resourceUrn": found.urn,
        "color": "never",
        "policyName": found.policy,
        "policyPackName": found.pack,
        "policyPackVersion": found.version,
        "policyPackVersionTag": found.version,
    }
    if event.remediated is not None:
        before, after = event.remediated
        return {"policyRemediationEvent": about | {"before": mask(before), "after": mask(after)}}
    return {"policyEvent": about | {"message": found.message, "enforcementLevel": found.level}}


def _metadata(step: StepInfo) -> Json:
    detailed = {path: {"diffKind": str(d.kind), "inputDiff": d.input_diff} for path, d in step.detailed.items()}
    optional: Json = {
        "keys": list(step.keys),
        "diffs": step.diffs,
        "logical": step.op not in _PARTS,
    }
    return {
        "op": str(step.op),
        "urn": step.urn,
        "type": step.type,
        "old": _state(step.old),
        "new": _state(step.new),
        # Empty where the compared properties are equal, null where there was nothing to compare.
        "detailedDiff": detailed if step.old is not None and step.new is not None else None,
        "provider": step.resource.provider,
    } | {k: v for k, v in optional.items() if v}


def _state(resource: ResourceState | None) -> Json:
    if resource is None:
        return None
    optional: Json = {
        "custom": resource.custom,
        "delete": resource.delete,
        "protect": resource.protect,
        "retainOnDelete": resource.retain_on_delete,
        "initErrors": list(resource.init_errors),
    }
    return {
        "type": resource.type,
        "urn": resource.urn,
        "id": UNKNOWN_TEXT if resource.id is UNKNOWN else resource.id,
        "parent": resource.parent,
        "inputs": mask(resource.inputs),
        "outputs": mask(resource.outputs),
        "provider": resource.provider,
    } | {k: v for k, v in optional.items() if v}
