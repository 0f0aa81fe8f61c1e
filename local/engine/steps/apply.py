"""Carries out and journals one resource's step: create, update, or only a report in a preview."""

from __future__ import annotations

from dataclasses import replace

from local.engine.stack.resource import ResourceState, with_secret_outputs
from local.engine.stack.snapshot import Operation
from local.engine.steps.hooked import carry_out
from local.engine.steps.managers import provider_of
from local.engine.steps.planner import provider_changed
from local.engine.steps.run import Run
from local.plugins.provider import (
    CreateRequest,
    OutcomeUnknown,
    PartialFailure,
    ProviderError,
    UpdateRequest,
)
from local.plugins.secret_texts import masking


def create(
    run: Run, goal: ResourceState, *, replaces: ResourceState | None = None, hooked: bool = True
) -> ResourceState:
    """Create a custom resource; returns it with id and outputs. Raises ProviderError, StackError.

    The resource that it `replaces` stays in the state until the run's end deletes it, unless they are the same object.
    Without `hooked` its hooks do not run.
    """
    exists: ResourceState | None = None

    def attempt() -> ResourceState:
        nonlocal exists
        if exists is not None:
            return _update(run, exists, goal)
        try:
            return _create(run, goal, replaces)
        except PartialFailure:
            # A retry must not create a second object: it updates this one, as the next run would.
            exists = run.store.snapshot.resources.get(goal.key)
            raise

    return carry_out(run.hooks if hooked else None, "create", None, goal, attempt)


def update(run: Run, old: ResourceState, goal: ResourceState) -> ResourceState:
    """Update a custom resource in place; returns it with its new outputs. Raises ProviderError, StackError."""
    return carry_out(run.hooks, "update", old, goal, lambda: _update(run, old, goal))


def _create(run: Run, goal: ResourceState, replaces: ResourceState | None) -> ResourceState:
    provider = provider_of(run, goal)
    if run.dry_run and not provider.supports_preview:
        return _finished(goal, provider.accepts_secrets, outputs=goal.inputs)
    request = CreateRequest(
        urn=goal.urn,
        inputs=goal.inputs,
        preview=run.dry_run,
        timeout=goal.timeouts.create,
        report=run.reporter(goal.urn),
    )
    if run.dry_run:
        foreseen = provider.create(request)
        return _finished(replace(goal, id=foreseen.id), provider.accepts_secrets, outputs=foreseen.outputs)
    now = run.store.now()
    goal = replace(goal, created=now, modified=now)
    number = run.store.begin(Operation.CREATING, goal)
    try:
        with masking(goal.inputs):
            made = provider.create(request)
    except OutcomeUnknown:
        raise
    except PartialFailure as failure:
        broken = replace(goal, id=failure.id, init_errors=(str(failure),))
        made_nevertheless = _finished(broken, provider.accepts_secrets, outputs=failure.outputs)
        keep_made(run, made_nevertheless, replaces, ends=number)
        raise
    except ProviderError:
        run.store.end(number)
        raise
    done = _finished(replace(goal, id=made.id), provider.accepts_secrets, outputs=made.outputs)
    keep_made(run, done, replaces, ends=number)
    run.store.settle(goal.urn)
    return done


def _update(run: Run, old: ResourceState, goal: ResourceState) -> ResourceState:
    provider = provider_of(run, goal)
    goal = replace(goal, id=old.id, created=old.created, modified=run.store.now())
    if run.dry_run and not provider.supports_preview:
        return _finished(goal, provider.accepts_secrets, outputs=goal.inputs)
    number = None if run.dry_run else run.store.begin(Operation.UPDATING, goal)
    try:
        with masking(old.inputs, goal.inputs):
            outputs = provider.update(
                UpdateRequest(
                    urn=goal.urn,
                    id=str(goal.id),
                    old_inputs=old.inputs,
                    old_outputs=old.outputs,
                    news=goal.inputs,
                    ignore_changes=goal.ignore_changes,
                    preview=run.dry_run,
                    timeout=goal.timeouts.update,
                    report=run.reporter(goal.urn),
                )
            )
    except OutcomeUnknown:
        raise
    except PartialFailure as failure:
        if number is not None:
            broken = replace(goal, init_errors=(str(failure),))
            run.store.put(_finished(broken, provider.accepts_secrets, outputs=failure.outputs), ends=number)
        raise
    except ProviderError:
        if number is not None:
            run.store.end(number)
        raise
    done = _finished(goal, provider.accepts_secrets, outputs=outputs)
    if number is not None:
        run.store.put(done, ends=number)
    return done


def keep_made(run: Run, made: ResourceState, replaces: ResourceState | None, *, ends: int | None = None) -> None:
    """Keep a resource that exists now; what it replaces is to be deleted, unless they are the same object."""
    condemned = run.store.snapshot.resources.get((made.urn, str(made.id)))
    if condemned is not None and _are_same(condemned, made):
        # An earlier run replaced it and could not delete it. The provider recognised the create that is now repeated.
        run.store.remove(condemned)
    replaced = None if replaces is None or _are_same(replaces, made) else replaces
    run.store.put(made, ends=ends, replaced=replaced)


def _are_same(old: ResourceState, new: ResourceState) -> bool:
    # An id is unique only where its provider manages: in another cluster it belongs to another object.
    return old.id == new.id and not provider_changed(old.provider, new.provider)


def _finished(goal: ResourceState, accepts_secrets: bool, *, outputs: dict[str, object]) -> ResourceState:
    return with_secret_outputs(replace(goal, outputs=dict(outputs)), from_inputs=not accepts_secrets)
