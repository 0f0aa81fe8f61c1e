"""Handles a resource's registration by the program: check, policies, diff, and the resulting step.

Registrations come from several threads at once, each when the program knows the resource's dependencies; so the steps
follow the program's own order, and independent ones run in parallel. Deletions follow at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from local.engine.events import UNTARGETED
from local.engine.policies.packs import Policies
from local.engine.program.goal import Goal
from local.engine.stack.resource import ResourceState
from local.engine.steps import pending, reading
from local.engine.steps.deletion import delete_all, targeted
from local.engine.steps.planner import Op, ProtectedError
from local.engine.steps.provider_instances import ProviderInstances
from local.engine.steps.registration import Steps
from local.engine.steps.renaming import Renaming
from local.engine.steps.replacement import Replacement
from local.engine.steps.run import Absence, Absent, Reported, Run, StackError, info_of
from local.engine.steps.simulation import instance as provider_instance
from local.engine.steps.targets import Selection, needed_by
from local.plugins import urn as urns
from local.plugins.provider import Functions, ProviderError
from local.plugins.recorder import Recorder
from local.plugins.secret_texts import masked
from local.plugins.values import PropertyMap, Value, has_unknowns


class Deployment:
    """One run of the program against the state."""

    def __init__(self, run: Run, policies: Policies) -> None:
        self.run = run
        self.policies = policies
        self._olds = run.store.snapshot.live()
        self._interrupted = {} if run.dry_run else pending.interrupted_creates(run)
        self._replacement = Replacement(run)
        self._selection = Selection(run.targets)
        self._renaming = Renaming(run, self._olds, self._interrupted, self._replacement)
        self._steps = Steps(run, policies, self._replacement, self._olds, self._interrupted)
        self._providers = ProviderInstances(run, self._steps, self._olds, self._renaming.claim)
        self._finished = False
        self._root: ResourceState | None = None
        """The stack with its outputs of this run and, until the program has succeeded, those of the last one."""
        self.new_outputs: PropertyMap | None = None

    def register(self, goal: Goal) -> ResourceState:
        """Carry out the step of one resource.

        Raises StackError, reported already, which ends the program, or Absent, with which it continues.
        """
        return self._mention(goal, lambda urn: self._bring_about(urn, goal))

    def read(self, goal: Goal, id: Value) -> ResourceState:
        """Read an external object. Raises as `register` does."""
        return self._mention(goal, lambda urn: self._read(urn, goal, id))

    def _mention(self, goal: Goal, step: Callable[[str], ResourceState]) -> ResourceState:
        run = self.run
        if run.closed:
            raise StackError("the run has failed already")
        urn = urns.make(run.stack, run.project, goal.parent, goal.type, goal.name)
        if goal.template is not None:
            run.positions[urn] = _position_of(goal.template)
        try:
            self._renaming.claim(urn)
            done = step(urn)
        except Absent:
            raise
        except (StackError, ProviderError, ProtectedError) as error:
            message = masked(str(error), goal.inputs)
            if not isinstance(error, Reported):
                run.fail(message, urn)
            run.errored.add(urn)
            if run.continue_on_error:
                raise Absent(urn, Absence.FAILED) from error
            raise Reported(message, urn) from error
        with run.lock:
            run.registered[urn] = done
        self._providers.give(urn, goal.providers)
        return done

    def register_outputs(self, urn: str, outputs: PropertyMap) -> None:
        """Keep a component's outputs; the root stack's are the stack's."""
        run = self.run
        with run.lock:
            if urn in run.errored or urn in self._selection.skipped or urn in self._selection.kept:
                return
            state = run.registered.get(urn)
            if state is None:
                raise StackError(f"outputs for {urn}, which is not registered", urn)
            if not run.dry_run:
                outputs = self._known(urn, outputs)
            if urns.type_of(urn) == urns.STACK_TYPE:
                self.new_outputs = outputs
                # The SDK also registers the outputs of a program that raised: those that it had set by then.
                before = self._olds[urn].outputs if urn in self._olds else {}
                outputs = {**before, **outputs}
                self._root = replace(state, outputs=outputs)
            done = replace(state, outputs=outputs)
            run.registered[urn] = done
            begun = self._steps.begun.pop(urn, None)
        if not run.dry_run and state.outputs != outputs:
            run.store.put(done)
        if begun is not None and run.hooks is not None:
            operation, old = begun
            run.hooks.after(operation, old, done)

    def lookup(self, urn: str) -> ResourceState:
        """A registered resource, for a reference of the program."""
        with self.run.lock:
            found = self.run.registered.get(urn)
        if found is None:
            raise StackError(f"{urn} is not registered")
        return found

    def invoke(self, token: str, args: PropertyMap, provider: str, version: str) -> PropertyMap:
        """The answer of a provider's function, from the instance `provider` (URN::ID) or the default one.

        Raises StackError.
        """
        try:
            return self._functions(token, provider, version).invoke(token, args)
        except ProviderError as error:
            raise StackError(f"invoke {token}: {error}") from error

    def _functions(self, token: str, provider: str, version: str) -> Functions:
        run = self.run
        reference = provider or self._providers.default(urns.package_of(token), version)
        with run.lock:
            state = run.registered.get(reference.rpartition("::")[0])
        if state is None:
            raise StackError(f"invoke {token}: its provider {reference} is not registered")
        instance = provider_instance(run, state)
        if not isinstance(instance, Functions):
            raise StackError(f"invoke {token}: the embedded engine does not support functions of this provider")
        if isinstance(instance, Recorder):
            with run.lock:
                run.simulated_answers.add(token)
        return instance

    def _known(self, urn: str, outputs: PropertyMap) -> PropertyMap:
        """The outputs; unknown ones of failed or untargeted resources keep their old values."""
        before = self._olds[urn].outputs if urn in self._olds else {}
        kept = {k: before[k] for k, v in outputs.items() if has_unknowns(v) and k in before}
        return {k: v for k, v in outputs.items() if not has_unknowns(v)} | kept

    def finish(self, *, complete: bool) -> None:
        """After the program: check the stack's policies, then delete what it no longer declares. Effective only once.

        If the program is not `complete`, nothing is deleted: it may have had more to declare.
        """
        run = self.run
        if self._finished:
            return
        self._finished = True
        self._settle_outputs(complete=complete)
        if run.stopping or not complete or not self._check_targets():
            return
        if not run.failed:
            self.policies.check_stack(run, list(run.registered.values()))
        if run.closed:
            return
        for interrupted in self._interrupted.values():
            # The resource is to be deleted, which needs its provider.
            pending.adopt(run, interrupted)
        resources = run.store.snapshot.all()
        mentioned = run.registered.keys() | self._replacement.deleted | self._selection.skipped | run.errored
        needed = needed_by(run.errored, resources)
        leftovers = [r for r in resources if (r.delete or r.urn not in mentioned) and r.urn not in needed]
        try:
            delete_all(run, targeted(run, leftovers) or ())
        except ProtectedError as error:
            run.fail(str(error))

    def _settle_outputs(self, *, complete: bool) -> None:
        """Forget the outputs that the program no longer exports. A failed program may have had more to export."""
        if self._root is None or self.new_outputs is None:
            return
        if not complete:
            self.new_outputs = self._root.outputs
        elif self._root.outputs != self.new_outputs:
            done = replace(self._root, outputs=self.new_outputs)
            self.run.registered[done.urn] = done
            if not self.run.dry_run:
                self.run.store.put(done)

    def _check_targets(self) -> bool:
        """Check that each target exists. Only the program knows all resources, so this follows it."""
        run = self.run
        return run.targets is None or run.all_known(run.targets, {*self._olds, *self._renaming.claimed})

    # One resource.

    def _bring_about(self, urn: str, goal: Goal) -> ResourceState:
        self._renaming.recognise(urn, goal)
        if urns.is_provider(goal.type):
            if goal.import_id:
                raise StackError("a provider cannot be imported", urn)
            self.run.providers.check_known(urns.package_of(goal.type))
        state = self._state_of(urn, goal)
        if not self._selection.includes(state, exists=urn in self._olds):
            return self._untargeted(state)
        self._check_needs(state)
        if urns.is_provider(goal.type):
            return self._providers.register(state)
        return self._steps.resource(state, goal.import_id)

    def _read(self, urn: str, goal: Goal, id: Value) -> ResourceState:
        state = replace(self._state_of(urn, goal), id=id, deleted_with="")
        self._check_needs(state)
        old = self._steps.left(urn)
        if old is not None and not old.external and old.id != id:
            self._replacement.replaced.add(urn)
        return reading.read(self.run, old, state)

    def _untargeted(self, goal: ResourceState) -> ResourceState:
        """The step of an untargeted resource: an existing one stays as it is, a new one is not created."""
        run = self.run
        if run.replaces is not None and run.replaces.names(goal.urn):
            raise StackError("--replace selects it, but --target does not: add it as a target")
        old = self._olds.get(goal.urn)
        if old is None:
            raise Absent(goal.urn, Absence.UNTARGETED)
        with run.step(info_of(Op.SAME, old=old, new=old, note=UNTARGETED)):
            return old

    def _check_needs(self, goal: ResourceState) -> None:
        """Raise if a dependency of it does not exist and will not exist in this run."""
        run = self.run
        if missing := self._selection.missing(goal):
            raise StackError(f"it depends on {', '.join(sorted(missing))}, which does not exist and is not a --target")
        if run.continue_on_error and goal.requires() & run.errored:
            run.errored.add(goal.urn)
            raise Absent(goal.urn, Absence.SKIPPED)

    def _state_of(self, urn: str, goal: Goal) -> ResourceState:
        run = self.run
        with run.lock:
            parent = run.registered.get(goal.parent)
        template = goal.template or ResourceState(urn, goal.type, goal.custom)
        protect, retain, deleted_with = goal.protect, goal.retain_on_delete, template.deleted_with
        if parent is not None:
            protect = parent.protect if protect is None else protect
            retain = parent.retain_on_delete if retain is None else retain
            deleted_with = deleted_with or parent.deleted_with
        inputs = goal.inputs
        if urns.is_provider(goal.type):
            inputs = ProviderInstances.inputs_of(goal)
        provider = ""
        if goal.custom and not urns.is_provider(goal.type):
            provider = self._providers.of(goal)
        return replace(
            template,
            urn=urn,
            type=goal.type,
            custom=goal.custom,
            parent=goal.parent,
            inputs=inputs,
            provider=provider,
            protect=bool(protect),
            retain_on_delete=bool(retain),
            deleted_with=deleted_with,
        )


def _position_of(resource: ResourceState) -> str:
    """Its position for people: the line of `__main__.py` that leads to it, if there is one."""
    positions = (resource.source_position, *resource.stack_trace)
    return next((p for p in positions if p.startswith("project:///__main__.py#")), resource.source_position)
