"""Reads every resource as it really is, and brings the state up to date: `refresh`."""

from __future__ import annotations

from dataclasses import replace

from local.engine import paths
from local.engine.events import StepInfo
from local.engine.providers.provider import DiffResult
from local.engine.stack.resource import ResourceState, hidden_like, with_secret_outputs
from local.engine.steps.parallel import Independent, run_all
from local.engine.steps.planner import Op, differences, is_hidden
from local.engine.steps.run import Reported, Run, info_of
from local.engine.urn import is_provider
from local.engine.values import PropertyMap


def refresh(run: Run, *, note: str = "") -> None:
    """Refresh all resources, or the targets, independent of each other. Nothing real is changed.

    What is gone is forgotten. A preview keeps what it finds in memory, for what is planned after it. The `note` stands
    beside what changed.
    """
    resources = run.store.snapshot.ordered()
    if run.targets is not None:
        chosen = run.targets
        found = chosen.with_dependents(resources) if chosen.dependents else set()
        resources = [r for r in resources if chosen.names(r.urn) or r.urn in found]
    run_all(
        Independent(resources),
        lambda resource: _refresh_one(run, resource, note),
        workers=run.parallel,
        # One that cannot be read is no reason not to look at the others.
        stopping=lambda: run.interrupted,
        interrupt=run.interrupt,
    )


def _refresh_one(run: Run, old: ResourceState, note: str) -> bool:
    if not old.custom or is_provider(old.type) or old.pending_replacement:
        run.count(info_of(Op.SAME, old=old, new=old))
        return True
    try:
        with run.step(info_of(Op.REFRESH, old=old, new=old)) as finish:
            found = _read(run, old)
            finish(found if found.op is Op.SAME else replace(found, note=note or found.note))
            return True
    except Reported:
        return False


def _read(run: Run, old: ResourceState) -> StepInfo:
    provider = run.provider_of(old)
    found = provider.read(old.urn, str(old.id), old.inputs, old.outputs)
    if found.id is None:
        if run.dry_run:
            run.store.snapshot.resources.pop(old.key)
        else:
            run.store.remove(old)
        return info_of(Op.DELETE, old=old, note="gone")
    new = replace(
        old,
        id=found.id,
        inputs=_inputs(old, found.inputs, plain=not provider.accepts_secrets),
        outputs=found.outputs,
        init_errors=(),
    )
    new = with_secret_outputs(new, from_inputs=not provider.accepts_secrets)
    if new == old:
        return info_of(Op.SAME, old=old, new=old)
    if run.dry_run:
        run.store.snapshot.resources[new.key] = new
    else:
        run.store.put(replace(new, modified=run.store.now()))
    if old.init_errors or new.id != old.id:
        return StepInfo(Op.UPDATE, old.urn, old.type, old, new)
    # What changes by itself (a resource version, a status) is no drift: the provider says whether it matters to what
    # the program asked for, as in the CLI's refresh.
    diff = (
        DiffResult(None)
        if old.external
        else provider.diff(old.urn, str(new.id), new.inputs, new.outputs, old.inputs, old.ignore_changes)
    )
    detailed = differences(old.outputs, new.outputs)
    if diff.changed is False or (diff.changed is None and new.inputs == old.inputs and not detailed):
        return info_of(Op.SAME, old=old, new=new)
    wanted = [paths.parse(p) for p in diff.detailed]
    if wanted:
        detailed = {p: d for p, d in detailed.items() if any(paths.covers(w, paths.parse(p)) for w in wanted)}
    return StepInfo(Op.UPDATE, old.urn, old.type, old, new, detailed=detailed, hidden=is_hidden(old))


def _inputs(old: ResourceState, read: PropertyMap | None, *, plain: bool) -> PropertyMap:
    """What was read, or the old ones; what was secret in these stays so where the provider knows of no secrets."""
    # What was only read has those inputs by which it is found.
    if read is None or old.external:
        return old.inputs
    return {k: hidden_like(v, old.inputs.get(k)) for k, v in read.items()} if plain else read
