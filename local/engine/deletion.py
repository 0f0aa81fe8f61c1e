"""Deletes resources in reverse order of their dependencies, independent ones at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from local.engine.planner import Op, check_protection, deletions, goes_with
from local.engine.provider import OutcomeUnknown, ProviderError
from local.engine.resource import ResourceState
from local.engine.run import Reported, Run, info_of
from local.engine.state import Operation
from local.engine.urn import is_provider


def delete_all(run: Run, candidates: Sequence[ResourceState]) -> None:
    """Delete the candidates, and forget them. In a preview only tell. Raises ProtectedError before anything is done.

    After a failure the resources that the failed one needs stay; whatever is independent of them is not begun either,
    but what runs is waited for.
    """
    check_protection(r for r in candidates if not r.delete)
    with ThreadPoolExecutor(run.parallel, thread_name_prefix="delete") as pool:
        for wave in deletions(candidates):
            if run.failed:
                return
            for result in [pool.submit(delete_one, run, r, candidates) for r in wave]:
                result.result()


def delete_one(
    run: Run, resource: ResourceState, together: Sequence[ResourceState] = (), *, op: Op | None = None
) -> bool:
    """Delete one resource; False (and the run has failed) if its provider could not."""
    op = op or (Op.DELETE_REPLACED if resource.delete else Op.DELETE)
    retained = resource.retain_on_delete
    swept = goes_with(resource, together)
    note = "retained" if retained else "goes with what it is deletedWith" if swept else ""
    step = info_of(op, old=resource, note=note)
    try:
        with run.step(step):
            if run.dry_run:
                return True
            number: int | None = None
            if resource.custom and not is_provider(resource.type) and not retained and not swept:
                provider = run.provider_of(resource)
                number = run.store.begin(Operation.DELETING, resource)
                try:
                    provider.delete(
                        resource.urn,
                        str(resource.id),
                        resource.inputs,
                        resource.outputs,
                        timeout=resource.timeouts.delete,
                        report=run.reporter(resource.urn),
                    )
                except OutcomeUnknown:
                    raise
                except ProviderError:
                    run.store.end(number)
                    raise
            run.store.remove(resource, ends=number)
            return True
    except Reported:
        return False
