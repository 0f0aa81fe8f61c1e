"""Replacing a resource by deleting it first: what depends on it may have to go before it and be made again."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

from local.engine.providers.provider import DiffResult
from local.engine.stack.resource import ResourceState
from local.engine.steps.deletion import delete_one, unasked_deletion
from local.engine.steps.managers import provider_of
from local.engine.steps.planner import UNPROTECT, Op, ProtectedError, decide, dependents, diff_request, named
from local.engine.steps.run import Reported, Run, StackError
from local.engine.urn import is_provider
from local.engine.values import UNKNOWN, PropertyMap


class Replacement:
    """The deletions of one run that come before their turn. Safe from several threads."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.deleted: set[str] = set()
        """The URNs that were deleted because of another; the program makes them again."""
        self.replaced: set[str] = set()
        """The URNs that were replaced: `replaceWith` asks for them."""
        self._spared: set[str] = set()
        self._condemned: set[str] = set()
        """The URNs that are being deleted now, or are about to be."""
        self._settled = threading.Condition(run.lock)

    def spare(self, urn: str) -> None:
        """From now on it is the program's own registration that decides about it; what is being deleted is waited for.

        What is registered already needs nothing that is still to be replaced, whatever it needed in the last run.
        """
        with self._settled:
            self._settled.wait_for(lambda: urn not in self._condemned)
            self._spared.add(urn)

    def delete_first(self, old: ResourceState) -> None:
        """Delete what is replaced, and before it what cannot stay without it. Raises StackError, ProtectedError."""
        self._delete_dependents(old)
        if not delete_one(self._run, old, op=Op.DELETE_REPLACED):
            raise Reported("the old one could not be deleted")

    def _delete_dependents(self, old: ResourceState) -> None:
        """Delete first whatever would have to be replaced itself once this is gone; the program makes it again."""
        doomed = self._condemn(old)
        try:
            for resource in reversed(doomed):
                if not delete_one(self._run, resource, op=Op.DELETE_REPLACED):
                    raise Reported(f"{resource.urn} could not be deleted")
                self.deleted.add(resource.urn)
        finally:
            with self._settled:
                self._condemned -= {r.urn for r in doomed}
                self._settled.notify_all()

    def _condemn(self, old: ResourceState) -> list[ResourceState]:
        """What is to be deleted before the old one. Until then nobody else begins anything with it."""
        while True:
            doomed = self._followers(old)
            urns = {r.urn for r in doomed}
            with self._settled:
                if urns & self._spared:
                    # Registered meanwhile: it may be another's reason to go.
                    continue
                if urns & self._condemned:
                    self._settled.wait_for(partial(self._condemned.isdisjoint, urns))
                    continue
                self._condemned |= urns
                return doomed

    def _followers(self, old: ResourceState) -> list[ResourceState]:
        """What would have to be replaced itself, each after what it depends on. Raises if one of it may not go."""
        run = self._run
        replaced = {old.urn}
        doomed: list[ResourceState] = []
        for resource in dependents(old.urn, run.store.snapshot.ordered()):
            if not resource.custom or resource.urn in self._spared or not self._must_follow(resource, replaced):
                continue
            if run.targets is not None and not (run.targets.dependents or run.targets.names(resource.urn)):
                raise StackError(unasked_deletion(resource.urn), resource.urn)
            if resource.protect:
                raise ProtectedError(
                    f"{named(resource)} must be replaced with {named(old)} but is protected; {UNPROTECT}"
                )
            replaced.add(resource.urn)
            doomed.append(resource)
        return doomed

    def _must_follow(self, resource: ResourceState, replaced: set[str]) -> bool:
        if resource.external or resource.pending_replacement:
            return False
        if resource.provider.rpartition("::")[0] in replaced or replaced & {*resource.replace_with}:
            return True
        touched = [k for k, needs in resource.property_dependencies.items() if replaced & set(needs)]
        if not touched:
            return False
        inputs: PropertyMap = {k: UNKNOWN if k in touched else v for k, v in resource.inputs.items()}
        diff = self._difference(resource, inputs)
        return decide(replace(resource, protect=False), replace(resource, inputs=inputs), diff).op is Op.REPLACE

    def _difference(self, resource: ResourceState, inputs: PropertyMap) -> DiffResult:
        if is_provider(resource.type):
            return DiffResult(None, replaces=self._run.providers.get(resource).replaced_by(inputs))
        goal = replace(resource, inputs=inputs, ignore_changes=())
        return provider_of(self._run, resource).diff(diff_request(resource, goal))
