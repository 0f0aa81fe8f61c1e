"""Reads every resource as it really is, and brings the state up to date: `refresh`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from local.engine import paths
from local.engine.events import StepInfo
from local.engine.planner import Op, differences, is_hidden
from local.engine.resource import ResourceState, with_secret_outputs
from local.engine.run import Reported, Run, info_of
from local.engine.urn import is_provider


def refresh(run: Run) -> None:
    """Refresh all resources, independent of each other. What is gone is forgotten; nothing real is changed."""
    resources = run.store.snapshot.ordered()
    with ThreadPoolExecutor(run.parallel, thread_name_prefix="refresh") as pool:
        for result in [pool.submit(_refresh_one, run, r) for r in resources]:
            result.result()


def _refresh_one(run: Run, old: ResourceState) -> None:
    if not old.custom or is_provider(old.type):
        run.count(info_of(Op.SAME, old=old, new=old))
        return
    try:
        with run.step(info_of(Op.REFRESH, old=old, new=old)) as finish:
            finish(_read(run, old))
    except Reported:
        return


def _read(run: Run, old: ResourceState) -> StepInfo:
    provider = run.provider_of(old)
    found = provider.read(old.urn, str(old.id), old.inputs, old.outputs)
    if found.id is None:
        if not run.dry_run:
            run.store.remove(old)
        return info_of(Op.DELETE, old=old, note="gone")
    new = replace(
        old,
        id=found.id,
        inputs=old.inputs if found.inputs is None else found.inputs,
        outputs=found.outputs,
        init_errors=(),
    )
    new = with_secret_outputs(new, from_inputs=not provider.accepts_secrets)
    if new == old:
        return info_of(Op.SAME, old=old, new=old)
    if not run.dry_run:
        run.store.put(replace(new, modified=run.store.now()))
    if old.init_errors or new.id != old.id:
        return StepInfo(Op.UPDATE, old.urn, old.type, old, new)
    # What changes by itself (a resource version, a status) is no drift: the provider says whether it matters to what
    # the program asked for, as in the CLI's refresh.
    diff = provider.diff(old.urn, str(new.id), new.inputs, new.outputs, old.inputs, old.ignore_changes)
    detailed = differences(old.outputs, new.outputs)
    if diff.changed is False or (diff.changed is None and new.inputs == old.inputs and not detailed):
        return info_of(Op.SAME, old=old, new=new)
    wanted = [paths.parse(p) for p in diff.detailed]
    if wanted:
        detailed = {p: d for p, d in detailed.items() if any(paths.covers(w, paths.parse(p)) for w in wanted)}
    return StepInfo(Op.UPDATE, old.urn, old.type, old, new, detailed=detailed, hidden=is_hidden(old))
