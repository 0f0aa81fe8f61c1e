"""Imports an existing object by its id instead of creating one: the option `import_`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from local.engine.events import Diagnostic, StepInfo
from local.engine.stack.resource import ResourceState, with_secret_outputs
from local.engine.steps import apply
from local.engine.steps.planner import Decision, Op, decide, diff_request
from local.engine.steps.run import Run, StackError
from local.plugins.paths import keep_old
from local.plugins.provider import Provider
from local.plugins.values import PropertyMap

Complete = Callable[[ResourceState, PropertyMap], ResourceState]
"""The goal with the inputs as provider and policies return them, given the old ones."""


def is_wanted(old: ResourceState | None, import_id: str) -> bool:
    """Whether the import is still due: nothing is in the state yet, or another object than the named one."""
    return bool(import_id) and (old is None or old.external or (old.import_id or old.id) != import_id)


def take_over(
    run: Run, provider: Provider, old: ResourceState | None, goal: ResourceState, import_id: str, complete: Complete
) -> ResourceState:
    """Read the object and keep it as the resource; the run's end deletes its predecessor.

    It must match the program, because the next update would change it otherwise; in a preview a mismatch is a warning.
    Nothing real is changed, so after a kill here the run only has to be repeated. Raises StackError, ProviderError.
    """
    step = StepInfo(Op.IMPORT if old is None else Op.IMPORT_REPLACEMENT, goal.urn, goal.type, old, goal)
    with run.step(step) as finish:
        found = provider.read(goal.urn, import_id, {}, {})
        if found.id is None:
            raise StackError(f"resource {import_id!r} does not exist")
        if found.inputs is None:
            raise StackError(f"{import_id!r} cannot be imported: its provider does not return its inputs")
        now = run.store.now()
        goal = replace(goal, id=found.id, import_id=import_id, outputs=found.outputs, created=now, modified=now)
        goal = with_secret_outputs(goal, from_inputs=not provider.accepts_secrets)
        there = replace(goal, inputs=found.inputs)
        goal = complete(replace(goal, inputs=keep_old(goal.inputs, there.inputs, goal.ignore_changes)), there.inputs)
        diff = provider.diff(diff_request(there, goal))
        decision = decide(replace(there, protect=False), goal, diff)
        _compare(run, goal, decision)
        if not run.dry_run:
            apply.keep_made(run, goal, old)
        finish(replace(step, old=there, new=goal, detailed=decision.detailed))
    return goal


def _compare(run: Run, goal: ResourceState, decision: Decision) -> None:
    if decision.op is Op.SAME:
        return
    differing = ", ".join(decision.keys or decision.replace_keys)
    message = f"inputs to import do not match the existing resource: {differing}"
    if not run.dry_run:
        raise StackError(message)
    run.emit(Diagnostic("warning", f"{message}; importing this resource will fail", goal.urn))
