"""Replacing a resource by deleting it first: what depends on it may have to go before it and be made again."""

from __future__ import annotations

from dataclasses import replace

from local.engine.stack.resource import ResourceState
from local.engine.steps.deletion import delete_one, unasked_deletion
from local.engine.steps.planner import Op, ProtectedError, decide, dependents
from local.engine.steps.run import Reported, Run, StackError
from local.engine.values import UNKNOWN, Value


class Replacement:
    """The deletions of one run that come before their turn."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.deleted: set[str] = set()
        """The URNs that were deleted because of another; the program makes them again."""
        self.replaced: set[str] = set()
        """The URNs that were replaced: `replaceWith` asks for them."""

    def delete_first(self, old: ResourceState) -> None:
        """Delete what is replaced, and before it what cannot stay without it. Raises StackError, ProtectedError."""
        self._delete_dependents(old)
        if not delete_one(self._run, old, op=Op.DELETE_REPLACED):
            raise Reported("the old one could not be deleted")

    def _delete_dependents(self, old: ResourceState) -> None:
        """Delete first whatever would have to be replaced itself once this is gone; the program makes it again."""
        run = self._run
        found = dependents(old.urn, run.store.snapshot.ordered())
        replaced = {old.urn}
        doomed: list[ResourceState] = []
        for resource in found:
            if not resource.custom or resource.urn in run.registered:
                continue
            if self._must_follow(resource, replaced):
                if run.targets is not None and not (run.targets.dependents or run.targets.names(resource.urn)):
                    raise StackError(unasked_deletion(resource.urn), resource.urn)
                replaced.add(resource.urn)
                doomed.append(resource)
        for resource in reversed(doomed):
            if resource.protect:
                raise ProtectedError(f"{resource.urn} must be replaced with {old.urn} but is protected")
            if not delete_one(run, resource, op=Op.DELETE_REPLACED):
                raise Reported(f"{resource.urn} could not be deleted")
            self.deleted.add(resource.urn)

    def _must_follow(self, resource: ResourceState, replaced: set[str]) -> bool:
        if resource.external or resource.pending_replacement:
            return False
        if resource.provider.rpartition("::")[0] in replaced or replaced & {*resource.replace_with}:
            return True
        touched = [k for k, needs in resource.property_dependencies.items() if replaced & set(needs)]
        if not touched:
            return False
        inputs: dict[str, Value] = {k: UNKNOWN if k in touched else v for k, v in resource.inputs.items()}
        provider = self._run.provider_of(resource)
        diff = provider.diff(resource.urn, str(resource.id), resource.inputs, resource.outputs, inputs, ())
        return decide(replace(resource, protect=False), replace(resource, inputs=inputs), diff).op is Op.REPLACE
