"""Resolves the pending operations of an interrupted run, so that nothing is made twice and nothing is lost.

The providers' creates are idempotent (they recognise a repetition by a token, a name or server-side apply), so an
interrupted create is repeated with the same inputs: it finds what it made, or makes it. An interrupted delete is
repeated too: already gone is a success. After an interrupted update the old state is kept, but may be outdated: so the
next `up` updates the resource, whatever the program declares by then.
"""

from __future__ import annotations

import time
from dataclasses import replace

from local.engine.events import Diagnostic, StepDone, StepFailed, StepStarted
from local.engine.stack.resource import ResourceState
from local.engine.stack.snapshot import Operation, PendingOperation, in_order
from local.engine.steps import apply
from local.engine.steps.deletion import delete_one
from local.engine.steps.hooked import delete_hooks
from local.engine.steps.planner import Op
from local.engine.steps.run import Run, StackError, info_of
from local.plugins.provider import PartialFailure, ProviderError
from local.plugins.values import has_secrets

HALF_DONE = "an update of it was interrupted"
"""Why a resource may differ from its state."""
ADOPT_SECONDS = 5.0
"""How long an object that is only looked up, to be read or deleted, may take to become ready: it need not be."""


def resolve(run: Run, *, creates: bool) -> None:
    """Finish the pending operations; those that cannot be finished yet stay pending. A preview only reports them.

    Without `creates`, these are left to the program's registrations, when their dependencies have been made.
    """
    pending = dict(run.store.snapshot.pending)
    if run.dry_run:
        _preview_resolution(run, list(pending.values()))
        return
    order = {r.key: i for i, r in enumerate(in_order(p.resource for p in pending.values()))}
    for number, operation in sorted(pending.items(), key=lambda item: order[item[1].resource.key]):
        resource = operation.resource
        if number not in run.store.snapshot.pending:
            # Another interrupted create of the same resource has settled it.
            continue
        run.emit(Diagnostic("warning", f"an earlier run was interrupted while {operation.operation} it", resource.urn))
        if operation.operation is Operation.CREATING:
            if creates:
                adopt(run, resource)
        elif operation.operation is Operation.DELETING and _is_known(run, resource):
            if hooks := delete_hooks(resource):
                warning = f"deleting it without its hooks ({', '.join(hooks)}): no program runs yet"
                run.emit(Diagnostic("warning", warning, resource.urn))
            if delete_one(run, resource):
                run.store.end(number)
        elif operation.operation is Operation.UPDATING and _is_known(run, resource):
            run.store.put(_doubtful(run, resource), ends=number)
        else:
            run.store.end(number)


def _is_known(run: Run, resource: ResourceState) -> bool:
    """Whether this object is still in the state, and not its successor."""
    known = run.store.snapshot.resources.get(resource.key)
    return known is not None and known.id == resource.id


def _doubtful(run: Run, resource: ResourceState) -> ResourceState:
    """The state of a resource whose update was interrupted, marked so that the next comparison does not trust it.

    A refresh may find what the update made secret, and what the state does not know yet.
    """
    known = run.store.snapshot.resources[resource.key]
    secret = {*known.additional_secret_outputs, *(key for key, value in resource.inputs.items() if has_secrets(value))}
    return replace(known, init_errors=(HALF_DONE,), additional_secret_outputs=tuple(sorted(secret)))


def _preview_resolution(run: Run, pending: list[PendingOperation]) -> None:
    """Report what `up` will resolve first, and continue in memory as if it had: what was being deleted is gone.

    Planned from a half-deleted state, a preview would fail (a declared machine that is gone), and so would `up`, which
    starts with one.
    """
    reported = set()
    for operation in pending:
        resource = operation.resource
        if (operation.operation, resource.key) not in reported:
            reported.add((operation.operation, resource.key))
            message = f"an earlier run was interrupted while {operation.operation} it; the next run resolves that first"
            run.emit(Diagnostic("warning", message, resource.urn))
        if operation.operation is Operation.DELETING:
            run.store.snapshot.resources.pop(resource.key, None)
        elif operation.operation is Operation.UPDATING and _is_known(run, resource):
            run.store.snapshot.resources[resource.key] = _doubtful(run, resource)


def interrupted_creates(run: Run) -> dict[str, ResourceState]:
    """The interrupted creates of the last run, by URN."""
    pending = run.store.snapshot.pending.copy().values()
    return {p.resource.urn: p.resource for p in pending if p.operation is Operation.CREATING}


def forget_creates(run: Run) -> None:
    """Forget the interrupted creates because the user says that nothing was made."""
    for urn in interrupted_creates(run):
        run.emit(Diagnostic("warning", "forgotten, as requested: if it was made, nothing will delete it", urn))
        run.store.settle(urn)


def adopt(run: Run, goal: ResourceState) -> None:
    """Bring an object with unknown outcome into the state, ready or not."""
    run.emit(Diagnostic("info", "repeating its create, to learn what exists", goal.urn))
    timeout = min(goal.timeouts.create or ADOPT_SECONDS, ADOPT_SECONDS)
    resume(run, replace(goal, timeouts=replace(goal.timeouts, create=timeout)), hooked=False)


def resume(run: Run, goal: ResourceState, *, hooked: bool = True) -> ResourceState | None:
    """Repeat an interrupted create with the same inputs; None if that was not possible.

    Its hooks run again unless `hooked` is False: how far they came is unknown.
    """
    step = info_of(Op.CREATE, new=goal, note="resumed")
    started = time.monotonic()
    run.emit(StepStarted(step, planning=False))
    live = run.store.snapshot.live().get(goal.urn)
    try:
        made = apply.create(run, goal, replaces=live, hooked=hooked)
    except StackError as error:
        # Its provider's cluster or account is gone, and the object with it.
        run.emit(Diagnostic("warning", f"dropped: {error}", goal.urn))
        run.store.settle(goal.urn)
        return None
    except PartialFailure as failure:
        run.emit(Diagnostic("warning", f"it exists, but is not ready: {failure}", goal.urn))
        run.store.settle(goal.urn)
        return run.store.snapshot.live()[goal.urn]
    except ProviderError as error:
        run.emit(StepFailed(step))
        run.emit(Diagnostic("warning", f"could not be finished: {error}", goal.urn))
        return None
    done = info_of(Op.CREATE, new=made, note="resumed")
    run.emit(StepDone(done, planning=False, seconds=time.monotonic() - started))
    run.count(done)
    return made


def report_remaining(run: Run) -> None:
    """Fail a run that ends with pending operations."""
    remaining = run.store.snapshot.pending.values()
    if remaining and not run.dry_run:
        names = ", ".join(f"{p.operation} {p.resource.urn}" for p in remaining)
        run.fail(
            f"the outcome is still unknown: {names}; fix the cause and run again, or use `refresh "
            "--clear-pending-creates` if it was not created"
        )
