"""Resolves what an interrupted run left undecided, so that nothing is made twice and nothing is lost.

The providers' creates are idempotent (a token, a name or server-side apply tells a repeated one), so an interrupted
create is done again with the very inputs it was begun with: it finds what it made, or makes it. An interrupted delete
is done again too: gone already is a success. After an interrupted update the old state still stands, and the next
comparison finds what is to be done.
"""

from __future__ import annotations

import time

from local.engine import apply
from local.engine.deletion import delete_one
from local.engine.events import Diagnostic, StepDone, StepFailed, StepStarted
from local.engine.planner import Op
from local.engine.provider import ProviderError
from local.engine.resource import ResourceState
from local.engine.run import Run, StackError, info_of
from local.engine.state import Operation, in_order


def resolve(run: Run) -> None:
    """Finish the pending operations; what cannot be finished yet stays pending. A preview only tells of them."""
    pending = dict(run.store.snapshot.pending)
    if not pending:
        return
    if run.dry_run:
        names = ", ".join(f"{p.operation} {p.resource.urn}" for p in pending.values())
        message = f"an earlier run was interrupted ({names}); the next up, refresh or destroy resolves it"
        run.emit(Diagnostic("warning", message))
        return
    order = {r.key: i for i, r in enumerate(in_order(p.resource for p in pending.values()))}
    for number, operation in sorted(pending.items(), key=lambda item: order[item[1].resource.key]):
        resource = operation.resource
        run.emit(Diagnostic("warning", f"an earlier run was interrupted while {operation.operation} it", resource.urn))
        if operation.operation is Operation.CREATING:
            _create_again(run, number, resource)
        elif operation.operation is Operation.DELETING and resource.key in run.store.snapshot.resources:
            if delete_one(run, resource):
                run.store.end(number)
        else:
            run.store.end(number)


def report_remaining(run: Run) -> None:
    """Fail a run that ends with operations of which nobody knows whether they happened."""
    remaining = run.store.snapshot.pending.values()
    if remaining and not run.dry_run:
        names = ", ".join(f"{p.operation} {p.resource.urn}" for p in remaining)
        run.fail(f"undecided still: {names}; run it again when the cause is mended")


def _create_again(run: Run, number: int, goal: ResourceState) -> None:
    step = info_of(Op.CREATE, new=goal, note="resumed")
    started = time.monotonic()
    run.emit(StepStarted(step, planning=False))
    try:
        made = apply.create(run, goal, replaces=run.store.snapshot.live().get(goal.urn))
    except StackError as error:
        # What managed it is gone, and it with it.
        run.emit(Diagnostic("warning", f"given up: {error}", goal.urn))
        run.store.end(number)
    except ProviderError as error:
        run.emit(StepFailed(step))
        run.emit(Diagnostic("warning", f"cannot be finished: {error}", goal.urn))
    else:
        done = info_of(Op.CREATE, new=made, note="resumed")
        run.emit(StepDone(done, planning=False, seconds=time.monotonic() - started))
        run.count(done)
