"""Resolves what an interrupted run left undecided, so that nothing is made twice and nothing is lost.

The providers' creates are idempotent (a token, a name or server-side apply tells a repeated one), so an interrupted
create is done again with the very inputs it was begun with: it finds what it made, or makes it. An interrupted delete
is done again too: gone already is a success. After an interrupted update the old state still stands, but nobody knows
how much of it is still true: so the next `up` updates it, whatever the program wants by then.
"""

from __future__ import annotations

import time
from dataclasses import replace

from local.engine.events import Diagnostic, StepDone, StepFailed, StepStarted
from local.engine.providers.provider import PartialFailure, ProviderError
from local.engine.stack.resource import ResourceState
from local.engine.stack.snapshot import Operation, PendingOperation, in_order
from local.engine.steps import apply
from local.engine.steps.deletion import delete_one
from local.engine.steps.hooked import delete_hooks
from local.engine.steps.planner import Op
from local.engine.steps.run import Run, StackError, info_of

HALF_DONE = "an update of it was interrupted"
"""Why a resource is not as its state says."""
ADOPT_SECONDS = 5.0
"""How long an object that is only looked for, to be read or deleted, may take to become ready: it need not be."""


def resolve(run: Run, *, creates: bool) -> None:
    """Finish the pending operations; what cannot be finished yet stays pending. A preview only tells of them.

    Without `creates`, these are left to the program's registrations: then whatever they wait for is made meanwhile.
    """
    pending = dict(run.store.snapshot.pending)
    if run.dry_run:
        _foresee(run, list(pending.values()))
        return
    order = {r.key: i for i, r in enumerate(in_order(p.resource for p in pending.values()))}
    for number, operation in sorted(pending.items(), key=lambda item: order[item[1].resource.key]):
        resource = operation.resource
        if number not in run.store.snapshot.pending:
            # Another create of the same resource, interrupted as well, has settled it.
            continue
        run.emit(Diagnostic("warning", f"an earlier run was interrupted while {operation.operation} it", resource.urn))
        if operation.operation is Operation.CREATING:
            if creates:
                adopt(run, resource)
        elif operation.operation is Operation.DELETING and _is_known(run, resource):
            if hooks := delete_hooks(resource):
                warning = f"it is deleted without its hooks ({', '.join(hooks)}): no program runs yet"
                run.emit(Diagnostic("warning", warning, resource.urn))
            if delete_one(run, resource):
                run.store.end(number)
        elif operation.operation is Operation.UPDATING and _is_known(run, resource):
            run.store.put(_doubtful(run, resource), ends=number)
        else:
            run.store.end(number)


def _is_known(run: Run, resource: ResourceState) -> bool:
    """Whether this very object is in the state still, and not another that has taken its place."""
    known = run.store.snapshot.resources.get(resource.key)
    return known is not None and known.id == resource.id


def _doubtful(run: Run, resource: ResourceState) -> ResourceState:
    """What the state has of a resource whose update was interrupted, so that the next comparison is not trusted."""
    return replace(run.store.snapshot.resources[resource.key], init_errors=(HALF_DONE,))


def _foresee(run: Run, pending: list[PendingOperation]) -> None:
    """Tell what `up` will resolve first, and go on in memory as if it had: what was being deleted is gone then.

    Planned from what is half deleted, a preview would fail (a declared machine that is gone), and `up`, which makes
    sure by a preview, with it.
    """
    told = set()
    for operation in pending:
        resource = operation.resource
        if (operation.operation, resource.key) not in told:
            told.add((operation.operation, resource.key))
            message = f"an earlier run was interrupted while {operation.operation} it; the next one resolves that first"
            run.emit(Diagnostic("warning", message, resource.urn))
        if operation.operation is Operation.DELETING:
            run.store.snapshot.resources.pop(resource.key, None)
        elif operation.operation is Operation.UPDATING and _is_known(run, resource):
            run.store.snapshot.resources[resource.key] = _doubtful(run, resource)


def interrupted_creates(run: Run) -> dict[str, ResourceState]:
    """What was being created when a run ended, by URN."""
    pending = run.store.snapshot.pending.copy().values()
    return {p.resource.urn: p.resource for p in pending if p.operation is Operation.CREATING}


def forget_creates(run: Run) -> None:
    """Take a person's word for it that what was being created does not exist."""
    for urn in interrupted_creates(run):
        run.emit(Diagnostic("warning", "forgotten, as asked: if it was made, nobody will delete it", urn))
        run.store.settle(urn)


def adopt(run: Run, goal: ResourceState) -> None:
    """Bring an object into the state of which nobody knows whether it was made, ready or not."""
    run.emit(Diagnostic("info", "made again, as it was begun, to learn what is there", goal.urn))
    timeout = min(goal.timeouts.create or ADOPT_SECONDS, ADOPT_SECONDS)
    resume(run, replace(goal, timeouts=replace(goal.timeouts, create=timeout)), hooked=False)


def resume(run: Run, goal: ResourceState, *, hooked: bool = True) -> ResourceState | None:
    """Do an interrupted create again, with the inputs that it was begun with; None if that was not possible.

    Its hooks are run again, too, unless `hooked` is False: nobody knows how far they came.
    """
    step = info_of(Op.CREATE, new=goal, note="resumed")
    started = time.monotonic()
    run.emit(StepStarted(step, planning=False))
    live = run.store.snapshot.live().get(goal.urn)
    try:
        made = apply.create(run, goal, replaces=live, hooked=hooked)
    except StackError as error:
        # What managed it is gone, and it with it.
        run.emit(Diagnostic("warning", f"given up: {error}", goal.urn))
        run.store.settle(goal.urn)
        return None
    except PartialFailure as failure:
        run.emit(Diagnostic("warning", f"it exists, but is not ready: {failure}", goal.urn))
        run.store.settle(goal.urn)
        return run.store.snapshot.live()[goal.urn]
    except ProviderError as error:
        run.emit(StepFailed(step))
        run.emit(Diagnostic("warning", f"cannot be finished: {error}", goal.urn))
        return None
    done = info_of(Op.CREATE, new=made, note="resumed")
    run.emit(StepDone(done, planning=False, seconds=time.monotonic() - started))
    run.count(done)
    return made


def report_remaining(run: Run) -> None:
    """Fail a run that ends with operations of which nobody knows whether they happened."""
    remaining = run.store.snapshot.pending.values()
    if remaining and not run.dry_run:
        names = ", ".join(f"{p.operation} {p.resource.urn}" for p in remaining)
        run.fail(
            f"undecided still: {names}; run it again when the cause is mended, "
            f"or `refresh --clear-pending-creates` if you know that it was not made"
        )
