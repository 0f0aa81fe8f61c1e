"""Deletes resources: each as soon as nothing that is deleted with it needs it any more."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence

from local.engine.events import RETAINED
from local.engine.providers.provider import DeleteRequest, OutcomeUnknown, ProviderError
from local.engine.stack.resource import ResourceState
from local.engine.stack.snapshot import Operation
from local.engine.steps.hooked import carry_out
from local.engine.steps.managers import provider_of
from local.engine.steps.parallel import Work, run_all
from local.engine.steps.planner import Op, check_protection, goes_with
from local.engine.steps.run import Reported, Run, info_of
from local.engine.steps.targets import needed_by
from local.engine.urn import is_provider


class Deletions(Work[ResourceState]):
    """The order of deletions. What a failed one needs stays, as does what that needs in turn."""

    def __init__(self, candidates: Iterable[ResourceState]) -> None:
        # The last made first: so it is the likelier one that nothing needs.
        self._waiting = {r.key: r for r in reversed(list(candidates))}
        # A replaced resource shares its URN with its successor: whoever needs the URN may need either.
        self._needed = Counter(urn for r in self._waiting.values() for urn in r.requires())
        self._by_urn: dict[str, list[ResourceState]] = {}
        for resource in self._waiting.values():
            self._by_urn.setdefault(resource.urn, []).append(resource)
        self._ready = deque(r for r in self._waiting.values() if not self._needed[r.urn])
        self._running = 0
        self._failed = False

    def take(self) -> ResourceState | None:
        if not self._ready:
            if self._running or self._failed or not self._waiting:
                return None
            # Only a damaged state has a cycle; then any order is as good.
            self._ready.append(next(iter(self._waiting.values())))
        self._running += 1
        found = self._ready.popleft()
        del self._waiting[found.key]
        return found

    def done(self, item: ResourceState, ok: bool) -> None:
        self._running -= 1
        if not ok:
            self._failed = True
            return
        for urn in item.requires():
            self._needed[urn] -= 1
            if not self._needed[urn]:
                self._ready += [r for r in self._by_urn.get(urn, ()) if r.key in self._waiting]


def delete_all(run: Run, candidates: Sequence[ResourceState]) -> None:
    """Delete the candidates, and forget them. In a preview only tell. Raises ProtectedError before anything is done.

    After a failure nothing new begins, or, with `--continue-on-error`, whatever the failed one does not need.
    """
    check_protection(r for r in candidates if not r.delete)
    run_all(
        Deletions(candidates),
        lambda resource: delete_one(run, resource, candidates),
        workers=run.parallel,
        stopping=lambda: run.stopping,
        interrupt=run.interrupt,
    )


def targeted(run: Run, candidates: Sequence[ResourceState]) -> list[ResourceState] | None:
    """Those of the candidates that `--target` allows to delete; None, and the run has failed, if it forbids it.

    What depends on a target has to go with it, which must be asked for, too.
    """
    if run.targets is None:
        return list(candidates)
    doomed = run.targets.with_dependents(run.store.snapshot.all())
    chosen = [r for r in candidates if r.urn in doomed]
    unasked = [] if run.targets.dependents else [r for r in chosen if not run.targets.names(r.urn)]
    for resource in unasked:
        run.fail(unasked_deletion(resource.urn), resource.urn)
    return None if unasked and not run.dry_run else chosen


def unasked_deletion(urn: str) -> str:
    """What is said of a resource that would have to be deleted with a target."""
    return f"{urn} would be deleted, but is no --target; make it one, too, or add --target-dependents"


def unprotected(resources: Sequence[ResourceState]) -> list[ResourceState]:
    """What can be deleted while all that is protected, and what that needs, stays."""
    protected = {r.urn for r in resources if r.protect}
    kept = protected | needed_by(protected, resources)
    return [r for r in resources if r.urn not in kept]


def delete_one(
    run: Run, resource: ResourceState, together: Collection[ResourceState] = (), *, op: Op | None = None
) -> bool:
    """Delete one resource; False (and the run has failed) if its provider could not."""
    if resource.external:
        # Somebody else's: it was only read, and is only forgotten.
        op = Op.DISCARD_REPLACED if resource.delete else Op.DISCARD
    op = op or (Op.DELETE_REPLACED if resource.delete else Op.DELETE)
    retained = resource.retain_on_delete
    swept = goes_with(resource, together)
    note = RETAINED if retained else "implicitly, by deletedWith" if swept else ""
    managed = _is_managed(resource) and not retained and not swept
    try:
        with run.step(info_of(op, old=resource, note=note)):
            carry_out(run.hooks, "delete", resource, None, lambda: _delete(run, resource, managed=managed))
    except Reported:
        return False
    return True


def _is_managed(resource: ResourceState) -> bool:
    gone = resource.pending_replacement
    return resource.custom and not resource.external and not gone and not is_provider(resource.type)


def _delete(run: Run, resource: ResourceState, *, managed: bool) -> None:
    if run.dry_run:
        return
    number: int | None = None
    if managed:
        provider = provider_of(run, resource)
        number = run.store.begin(Operation.DELETING, resource)
        try:
            provider.delete(
                DeleteRequest(
                    urn=resource.urn,
                    id=str(resource.id),
                    inputs=resource.inputs,
                    outputs=resource.outputs,
                    timeout=resource.timeouts.delete,
                    report=run.reporter(resource.urn),
                )
            )
        except OutcomeUnknown:
            raise
        except ProviderError:
            run.store.end(number)
            raise
    run.store.remove(resource, ends=number)
