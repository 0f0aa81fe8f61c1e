"""Reads every real resource and updates the state: `refresh`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace

from local.engine.events import StepInfo
from local.engine.stack.resource import ResourceState, with_secret_outputs
from local.engine.steps import pending
from local.engine.steps.managers import provider_of
from local.engine.steps.parallel import Work, run_all
from local.engine.steps.planner import Op, diff_request, is_hidden
from local.engine.steps.run import Reported, Run, info_of
from local.plugins.differences import differences, limited_to
from local.plugins.provider import DiffResult
from local.plugins.urn import is_provider
from local.plugins.values import PropertyMap, Secret, hidden_like


def refresh(run: Run, *, note: str = "") -> None:
    """Refresh all resources, or the targets, independently of each other. Nothing real is changed.

    What is gone is forgotten, and so is what is `deletedWith` it, without a read. A preview keeps the result in memory
    for the plan that follows. The `note` is shown beside each change.
    """
    resources = run.store.snapshot.ordered()
    present = Counter(r.urn for r in resources)
    if run.targets is not None:
        chosen = run.targets
        found = chosen.with_dependents(resources) if chosen.dependents else set()
        resources = [r for r in resources if chosen.names(r.urn) or r.urn in found]
    run_all(
        _Reads(resources),
        lambda resource: _refresh_one(run, resource, note, present),
        workers=run.parallel,
        # One failed read does not prevent the others.
        stopping=lambda: run.interrupted,
        interrupt=run.interrupt,
    )


class _Reads(Work[ResourceState]):
    """All at once, except that what is `deletedWith` another waits for it: if that is gone, it needs no read."""

    def __init__(self, resources: Iterable[ResourceState]) -> None:
        """`resources`: each after its dependencies."""
        self._left: Counter[str] = Counter()
        self._ready: deque[ResourceState] = deque()
        self._waiting: dict[str, list[ResourceState]] = {}
        for resource in resources:
            owner = resource.deleted_with
            (self._waiting.setdefault(owner, []) if self._left[owner] else self._ready).append(resource)
            self._left[resource.urn] += 1

    def take(self) -> ResourceState | None:
        return self._ready.popleft() if self._ready else None

    def done(self, item: ResourceState, ok: bool) -> None:
        del ok
        self._left[item.urn] -= 1
        if not self._left[item.urn]:
            self._ready += self._waiting.pop(item.urn, ())


def _refresh_one(run: Run, old: ResourceState, note: str, present: Counter[str]) -> bool:
    named = {key: urns for key, urns in old.property_dependencies.items() if urns}
    if named != old.property_dependencies and not run.dry_run:
        # As the CLI's refresh writes it; the next `up` restores the properties without dependencies.
        old = replace(old, property_dependencies=named)
        run.store.put(old)
    if not old.custom or is_provider(old.type) or old.pending_replacement:
        run.count(info_of(Op.SAME, old=old, new=old))
        return True
    try:
        with run.step(info_of(Op.REFRESH, old=old, new=old)) as finish:
            # A replaced resource shares its URN with its successor: either may be meant.
            swept = bool(old.deleted_with) and not present[old.deleted_with]
            found = _forgotten(run, old) if swept else _read(run, old)
            if found.op is Op.DELETE:
                with run.lock:
                    present[old.urn] -= 1
            finish(found if found.op is Op.SAME else replace(found, note=note or found.note))
            return True
    except Reported:
        return False


def _forgotten(run: Run, old: ResourceState) -> StepInfo:
    if run.dry_run:
        run.store.snapshot.resources.pop(old.key)
    else:
        run.store.remove(old)
    return info_of(Op.DELETE, old=old, note="gone")


def _read(run: Run, old: ResourceState) -> StepInfo:
    provider = provider_of(run, old)
    found = provider.read(old.urn, str(old.id), old.inputs, old.outputs)
    if found.id is None:
        return _forgotten(run, old)
    new = replace(
        old,
        id=found.id,
        inputs=_inputs(old, found.inputs, plain=not provider.accepts_secrets),
        outputs=found.outputs,
        # Without inputs, the provider has not said how far an interrupted update came.
        init_errors=old.init_errors if found.inputs is None and pending.HALF_DONE in old.init_errors else (),
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
    # What changes by itself (a resource version, a status) is not drift: the provider decides whether it affects the
    # program's inputs, as in the CLI's refresh.
    diff = DiffResult(None) if old.external else provider.diff(diff_request(new, old))
    detailed = differences(old.outputs, new.outputs)
    if diff.changed is False or (diff.changed is None and new.inputs == old.inputs and not detailed):
        return info_of(Op.SAME, old=old, new=new)
    if diff.detailed:
        detailed = limited_to(detailed, diff.detailed)
    return StepInfo(Op.UPDATE, old.urn, old.type, old, new, detailed=detailed, hidden=is_hidden(old))


def _inputs(old: ResourceState, read: PropertyMap | None, *, plain: bool) -> PropertyMap:
    """The inputs that were read, or the old ones; secrets stay secret where the provider does not know them."""
    # The inputs of an external resource are the keys by which it is found.
    if read is None or old.external:
        return old.inputs
    # An interrupted update may have made them secret.
    named = old.additional_secret_outputs if pending.HALF_DONE in old.init_errors else ()
    known = old.inputs if plain else {}
    return {k: hidden_like(v, Secret("") if k in named else known.get(k)) for k, v in read.items()}
