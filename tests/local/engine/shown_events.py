"""Events of runs, for the tests of the displays."""

from __future__ import annotations

from typing import Any

from local.engine.events import StepInfo, Summary
from local.engine.stack.resource import ResourceState
from local.engine.steps.planner import Op
from local.plugins.differences import differences

STACK = "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"


def resource(name: str, type: str = "cloud:m:Thing", **fields: Any) -> ResourceState:
    return ResourceState(f"urn:pulumi:dev::p::{type}::{name}", type, **{"custom": True, **fields})


def stack() -> ResourceState:
    return ResourceState(STACK, "pulumi:pulumi:Stack", custom=False)


def step(op: Op, old: ResourceState | None, new: ResourceState | None) -> StepInfo:
    shown = new or old
    assert shown is not None
    detailed = differences(old.inputs, new.inputs) if old and new else {}
    return StepInfo(op, shown.urn, shown.type, old, new, detailed=detailed)


def creating(name: str, **fields: Any) -> StepInfo:
    return step(Op.CREATE, None, resource(name, **{"parent": STACK, **fields}))


def summary(**fields: Any) -> Summary:
    base: dict[str, Any] = {"planning": True, "changes": {}, "seconds": 1.0, "failed": False}
    return Summary(**{**base, "old_outputs": {}, "new_outputs": {}, **fields})
