"""`destroy --run-program`: the program runs, but makes nothing; it lends its hooks and providers to the deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from local.engine import urn as urns
from local.engine.policies.packs import Policies
from local.engine.program.goal import Goal
from local.engine.stack.resource import ResourceState
from local.engine.steps.deployment import Deployment
from local.engine.steps.provider_instances import ProviderInstances
from local.engine.steps.run import Absence, Absent, Run, StackError
from local.engine.values import PropertyMap, Value, has_unknowns


class Destruction(Deployment):
    """One run of the program after which everything is deleted; its registrations are answered from the state."""

    def __init__(self, run: Run, delete: Callable[[], None]) -> None:
        """`delete` is called when the program has ended well, while its hooks can still be called."""
        super().__init__(run, Policies([]))
        self._delete = delete

    def register(self, goal: Goal) -> ResourceState:
        """What the state knows of the resource. Raises Absent if it knows none, StackError once the run has failed."""
        run = self.run
        if run.stopping:
            raise StackError("the run has failed already")
        urn = urns.make(run.stack, run.project, goal.parent, goal.type, goal.name)
        self._renaming.recognise(urn, goal)
        known = self._olds.get(urn)
        if known is None:
            raise Absent(urn, Absence.UNTARGETED)
        if urns.is_provider(goal.type) and not has_unknowns(goal.inputs):
            # Credentials may have been rotated since.
            known = replace(known, inputs=ProviderInstances.inputs_of(goal))
        with run.lock:
            run.registered[urn] = known
        return known

    def read(self, goal: Goal, id: Value) -> ResourceState:
        """As `register`: what is somebody else's may be gone by now."""
        del id
        return self.register(goal)

    def register_outputs(self, urn: str, outputs: PropertyMap) -> None:
        """They are of no use any more."""
        del urn, outputs

    def finish(self, *, complete: bool) -> None:
        """Delete. Not if the program was not `complete`: it may not have registered all hooks. Done once only."""
        if self._finished:
            return
        self._finished = True
        if complete and not self.run.stopping:
            self._delete()
