"""Deletes resources: each as soon as no other resource to delete depends on it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence

from local.engine.events import RETAINED
from local.engine.stack.resource import ResourceState
from local.engine.stack.snapshot import Operation
from local.engine.steps.hooked import carry_out
from local.engine.steps.managers import provider_of
from local.engine.steps.parallel import Work, run_all
from local.engine.steps.planner import Op, check_protection, goes_with
from local.engine.steps.run import Reported, Run, info_of
from local.engine.steps.targets import needed_by
from local.plugins.provider import DeleteRequest, OutcomeUnknown, ProviderError
from local.plugins.secret_texts import masking
from local.plugins.urn import is_provider


class Deletions(Work[ResourceState]):
    """The order of deletions. What a failed one depends on is kept, and so on recursively."""

    def __init__(self, candidates: Iterable[ResourceState]) -> None:
        # The newest first: it most likely has no dependents.
        self._waiting = {r.key: r for r in reversed(list(candidates))}
        # A replaced resource shares its URN with its successor: a dependent of the URN may depend on either.
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
    """Delete the candidates, and forget them. A preview only reports. Raises ProtectedError before the first deletion.

    After a failure nothing new starts or, with `--continue-on-error`, only what the failed one does not depend on.
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
    """The candidates that `--target` allows to delete; None, with the run failed, if it forbids one.

    What depends on a target must be deleted with it, which needs its own target or --target-dependents.
    """
    if run.targets is None:
        return list(candidates)
    urns = run.targets.with_dependents(run.store.snapshot.all())
    chosen = [r for r in candidates if r.urn in urns]
    untargeted = [] if run.targets.dependents else [r for r in chosen if not run.targets.names(r.urn)]
    for resource in untargeted:
        run.fail(untargeted_deletion_message(resource.urn), resource.urn)
    return None if untargeted and not run.dry_run else chosen


def untargeted_deletion_message(urn: str) -> str:
    """The message for a resource that would have to be deleted with a target."""
    return f"{urn} would be deleted, but is not a --target; make it one, or add --target-dependents"


def unprotected(resources: Sequence[ResourceState]) -> list[ResourceState]:
    """What can be deleted while protected resources and their dependencies stay."""
    protected = {r.urn for r in resources if r.protect}
    kept = protected | needed_by(protected, resources)
    return [r for r in resources if r.urn not in kept]


def delete_one(
    run: Run, resource: ResourceState, together: Collection[ResourceState] = (), *, op: Op | None = None
) -> bool:
    """Delete one resource; False, with the run failed, if its provider could not."""
    if resource.external:
        # An external resource was only read, and is only forgotten.
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
            with masking(resource.inputs):
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
