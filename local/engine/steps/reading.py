"""Reads an external object: `get`, and other stacks' outputs. The state keeps it as external."""

from __future__ import annotations

from dataclasses import replace

from local.engine.events import StepInfo
from local.engine.stack.resource import ResourceState, with_secret_outputs
from local.engine.steps import apply
from local.engine.steps.managers import provider_of
from local.engine.steps.planner import Op
from local.engine.steps.run import Run, StackError
from local.plugins.provider import ReadResult
from local.plugins.values import UNKNOWN


def read(run: Run, old: ResourceState | None, goal: ResourceState) -> ResourceState:
    """The resource with its present outputs, also in a preview; only an unknown id gives none.

    The run's end deletes the program's own predecessor unless it is that same object, which is released. Raises
    StackError, ProviderError.
    """
    provider = provider_of(run, goal)
    relinquished = old if old is not None and not old.external and old.id != goal.id else None
    step = StepInfo(Op.READ_REPLACEMENT if relinquished else Op.READ, goal.urn, goal.type, old, goal)
    with run.step(step) as finish:
        if goal.id is not UNKNOWN:
            # A provider may need either of the two besides the id.
            found: ReadResult = provider.read(goal.urn, str(goal.id), goal.inputs, goal.inputs)
            if found.id is None:
                raise StackError(f"resource {goal.id!r} does not exist")
            goal = replace(goal, id=found.id, outputs=found.outputs)
            goal = with_secret_outputs(goal, from_inputs=not provider.accepts_secrets)
        if old is not None:
            goal = replace(goal, created=old.created, modified=old.modified, unused=old.unused)
        if old is None or (old.inputs, old.outputs) != (goal.inputs, goal.outputs):
            goal = replace(goal, modified=run.store.now())
        if not run.dry_run and goal != old:
            apply.keep_made(run, goal, relinquished)
        finish(replace(step, new=goal))
    return goal
