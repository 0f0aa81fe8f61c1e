"""`destroy --run-program`: the program runs without creating anything, for its hooks and provider settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from local.engine.policies.packs import Policies
from local.engine.program.goal import Goal
from local.engine.stack.resource import ResourceState
from local.engine.steps.deployment import Deployment
from local.engine.steps.provider_instances import ProviderInstances
from local.engine.steps.run import Absence, Absent, Run, StackError
from local.plugins import urn as urns
from local.plugins.values import PropertyMap, Value, has_unknowns


class Destruction(Deployment):
    """One run of the program followed by the deletion of everything; the state answers its registrations."""

    def __init__(self, run: Run, delete: Callable[[], None]) -> None:
        """`delete` is called when the program has succeeded, while its hooks can still be called."""
        super().__init__(run, Policies([]))
        self._delete = delete

    def register(self, goal: Goal) -> ResourceState:
        """The resource from the state. Raises Absent if there is none, StackError once the run has failed."""
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
        """As `register`: the external object may be gone."""
        del id
        return self.register(goal)

    def register_outputs(self, urn: str, outputs: PropertyMap) -> None:
        """Ignored: the outputs are no longer used."""
        del urn, outputs

    def finish(self, *, complete: bool) -> None:
        """Delete, if the program is `complete`: otherwise hooks may be missing. Effective only once."""
        if self._finished:
            return
        self._finished = True
        if complete and not self.run.stopping:
            self._delete()
