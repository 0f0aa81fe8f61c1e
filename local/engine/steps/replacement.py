"""Replaces a resource by deleting it first; its dependents may have to be deleted before it and created again."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

from local.engine.stack.resource import ResourceState
from local.engine.steps.deletion import delete_one, untargeted_deletion_message
from local.engine.steps.managers import provider_of
from local.engine.steps.planner import UNPROTECT, Op, ProtectedError, decide, dependents, diff_request, named
from local.engine.steps.run import Reported, Run, StackError
from local.plugins.provider import DiffResult
from local.plugins.urn import is_provider
from local.plugins.values import UNKNOWN, PropertyMap


class Replacement:
    """The early deletions of one run. Safe from several threads."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.deleted: set[str] = set()
        """The URNs deleted because of another; the program creates them again."""
        self.replaced: set[str] = set()
        """The replaced URNs, for `replaceWith`."""
        self._registered: set[str] = set()
        self._deleting: set[str] = set()
        """The URNs that are being deleted, or are about to be."""
        self._settled = threading.Condition(run.lock)

    def mark_registered(self, urn: str) -> None:
        """Leave the resource to the program's own registration from now on; waits for a deletion in progress.

        A registered resource no longer depends on what is still to be replaced, whatever its old state says.
        """
        with self._settled:
            self._settled.wait_for(lambda: urn not in self._deleting)
            self._registered.add(urn)

    def delete_first(self, old: ResourceState) -> None:
        """Delete a replaced resource, after its dependents that must go too. Raises StackError, ProtectedError."""
        self._delete_dependents(old)
        if not delete_one(self._run, old, op=Op.DELETE_REPLACED):
            raise Reported("the old one could not be deleted")

    def _delete_dependents(self, old: ResourceState) -> None:
        """Delete the dependents that its deletion forces to be replaced; the program creates them again."""
        to_delete = self._claim(old)
        try:
            for resource in reversed(to_delete):
                if not delete_one(self._run, resource, op=Op.DELETE_REPLACED):
                    raise Reported(f"{resource.urn} could not be deleted")
                self.deleted.add(resource.urn)
        finally:
            with self._settled:
                self._deleting -= {r.urn for r in to_delete}
                self._settled.notify_all()

    def _claim(self, old: ResourceState) -> list[ResourceState]:
        """The dependents to delete before the old one. Until they are deleted, no other thread touches them."""
        while True:
            to_delete = self._followers(old)
            urns = {r.urn for r in to_delete}
            with self._settled:
                if urns & self._registered:
                    # Registered meanwhile: it may be the reason for another's replacement.
                    continue
                if urns & self._deleting:
                    self._settled.wait_for(partial(self._deleting.isdisjoint, urns))
                    continue
                self._deleting |= urns
                return to_delete

    def _followers(self, old: ResourceState) -> list[ResourceState]:
        """The dependents to be replaced, each after what it depends on. Raises if one of them must not be deleted."""
        run = self._run
        replaced = {old.urn}
        to_delete: list[ResourceState] = []
        for resource in dependents(old.urn, run.store.snapshot.ordered()):
            if not resource.custom or resource.urn in self._registered or not self._must_follow(resource, replaced):
                continue
            if run.targets is not None and not (run.targets.dependents or run.targets.names(resource.urn)):
                raise StackError(untargeted_deletion_message(resource.urn), resource.urn)
            if resource.protect:
                raise ProtectedError(
                    f"{named(resource)} must be replaced with {named(old)} but is protected; {UNPROTECT}"
                )
            replaced.add(resource.urn)
            to_delete.append(resource)
        return to_delete

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
