"""What happens when the program registers a resource: check, policies, diff, and the step that follows from it.

Registrations come from several threads at once, each when the program knows what the resource depends on; so the
program's own order is the order of the steps, and what is independent runs in parallel. Deletions follow at the end.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from local.engine import apply, pending
from local.engine import urn as urns
from local.engine.deletion import delete_all, targeted
from local.engine.events import StepInfo
from local.engine.goal import Goal
from local.engine.hooks import Operation, carry_out
from local.engine.paths import keep_old
from local.engine.planner import (
    Decision,
    Op,
    ProtectedError,
    decide,
    default_provider_name,
    is_hidden,
)
from local.engine.policies import Policies
from local.engine.provider import DiffResult, PartialFailure, Provider, ProviderError
from local.engine.renaming import Renaming
from local.engine.replacement import Replacement
from local.engine.resource import ResourceState
from local.engine.run import Absence, Absent, Reported, Run, StackError, info_of
from local.engine.targets import Selection, needed_by
from local.engine.values import UNKNOWN, PropertyMap, Value, has_unknowns
from local.engine.wire import UNKNOWN_TEXT

INTERNAL: Final = "__internal"


class Deployment:
    """One run of the program against the state."""

    def __init__(self, run: Run, policies: Policies) -> None:
        self.run = run
        self.policies = policies
        self._olds = run.store.snapshot.live()
        self._interrupted = {} if run.dry_run else pending.interrupted_creates(run)
        self._components: dict[str, Mapping[str, str]] = {}
        self._begun: dict[str, tuple[Operation, ResourceState | None]] = {}
        """Components whose hooks after their step are still to come, with the step's operation and old state."""
        self._replacement = Replacement(run)
        self._selection = Selection(run.targets)
        self._renaming = Renaming(run, self._olds, self._interrupted, self._replacement.deleted)
        self._finished = False
        self.new_outputs: PropertyMap | None = None

    def register(self, goal: Goal) -> ResourceState:
        """Bring one resource about.

        Raises StackError, reported already, which ends the program, or Absent, with which it goes on.
        """
        run = self.run
        if run.stopping and not run.dry_run:
            raise StackError("the run has failed already")
        urn = urns.make(run.stack, run.project, goal.parent, goal.type, goal.name)
        if goal.template is not None:
            run.positions[urn] = goal.template.source_position
        try:
            self._renaming.claim(urn)
            self._renaming.recognise(urn, goal)
            if urns.is_provider(goal.type):
                run.providers.check_known(urns.package_of(goal.type))
            state = self._state_of(urn, goal)
            if not self._selection.includes(state, exists=urn in self._olds):
                done = self._untargeted(state)
            else:
                self._check_needs(state)
                done = self._provider_instance(state) if urns.is_provider(goal.type) else self._resource(state)
        except Absent:
            raise
        except (StackError, ProviderError, ProtectedError) as error:
            if not isinstance(error, Reported):
                run.fail(str(error), urn)
            run.errored.add(urn)
            if run.continue_on_error:
                raise Absent(urn, Absence.FAILED) from error
            raise Reported(str(error), urn) from error
        with run.lock:
            run.registered[urn] = done
            self._components[urn] = goal.providers
        return done

    def register_outputs(self, urn: str, outputs: PropertyMap) -> None:
        """Take a component's outputs; the root stack's are the stack's."""
        run = self.run
        with run.lock:
            if urn in run.errored or urn in self._selection.skipped or urn in self._selection.kept:
                return
            state = run.registered.get(urn)
            if state is None:
                raise StackError(f"outputs for {urn}, which is not registered", urn)
            if not run.dry_run:
                outputs = self._known(urn, outputs)
            done = replace(state, outputs=outputs)
            run.registered[urn] = done
            if urns.type_of(urn) == urns.STACK_TYPE:
                self.new_outputs = outputs
            begun = self._begun.pop(urn, None)
        if not run.dry_run and state.outputs != outputs:
            run.store.put(done)
        if begun is not None and run.hooks is not None:
            operation, old = begun
            run.hooks.after(operation, old, done)

    def lookup(self, urn: str) -> ResourceState:
        """A registered resource, for the program that holds a reference to it."""
        with self.run.lock:
            found = self.run.registered.get(urn)
        if found is None:
            raise StackError(f"{urn} is not registered")
        return found

    def _known(self, urn: str, outputs: PropertyMap) -> PropertyMap:
        """The outputs; what came to nothing this time (a failed or untargeted resource's) stays what it was."""
        before = self._olds[urn].outputs if urn in self._olds else {}
        kept = {k: before[k] for k, v in outputs.items() if has_unknowns(v) and k in before}
        return {k: v for k, v in outputs.items() if not has_unknowns(v)} | kept

    def finish(self, *, complete: bool) -> None:
        """After the program: the stack's policies, then delete what it no longer mentions. Done once only.

        Not if the program was not `complete`: it may have had more to mention.
        """
        run = self.run
        if self._finished:
            return
        self._finished = True
        if run.stopping or not complete or not self._check_targets():
            return
        if not run.failed:
            self.policies.check_stack(run, list(run.registered.values()))
        if run.stopping and not run.dry_run:
            return
        for interrupted in self._interrupted.values():
            # The program no longer wants it; to be deleted it must be known.
            pending.adopt(run, interrupted)
        resources = run.store.snapshot.all()
        mentioned = run.registered.keys() | self._replacement.deleted | self._selection.skipped | run.errored
        needed = needed_by(run.errored, resources)
        leftovers = [r for r in resources if (r.delete or r.urn not in mentioned) and r.urn not in needed]
        try:
            delete_all(run, targeted(run, leftovers) or ())
        except ProtectedError as error:
            run.fail(str(error))

    def _check_targets(self) -> bool:
        """Whether each target exists. Only the program says what there would be, so this comes after it."""
        run = self.run
        unknown = run.targets.unknown({*self._olds, *self._renaming.claimed}) if run.targets else []
        for message in unknown:
            run.fail(message)
        return not unknown

    # One resource.

    def _untargeted(self, goal: ResourceState) -> ResourceState:
        """What exists stays as it is, whatever the program wants of it; what does not exist is not made."""
        run = self.run
        if run.replaces is not None and run.replaces.names(goal.urn):
            raise StackError("--replace names it, but --target does not: it has to be a target, too")
        old = self._olds.get(goal.urn)
        if old is None:
            raise Absent(goal.urn, Absence.UNTARGETED)
        with run.step(info_of(Op.SAME, old=old, new=old)):
            return old

    def _check_needs(self, goal: ResourceState) -> None:
        """Raise what is to be raised if something that it needs is not there, and will not be in this run."""
        run = self.run
        if missing := self._selection.missing(goal):
            raise StackError(f"it needs {', '.join(sorted(missing))}, which does not exist and is no --target")
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
            inputs = {INTERNAL: {}, **inputs} | ({"version": goal.version} if goal.version else {})
        provider = ""
        if goal.custom and not urns.is_provider(goal.type):
            provider = goal.provider or self._inherited_provider(goal) or self._default_provider(goal)
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

    def _inherited_provider(self, goal: Goal) -> str:
        package = urns.package_of(goal.type)
        with self.run.lock:
            parent = self.run.registered.get(goal.parent)
            while parent is not None:
                if reference := self._components.get(parent.urn, {}).get(package):
                    return reference
                if parent.provider and urns.package_of(parent.type) == package:
                    return parent.provider
                parent = self.run.registered.get(parent.parent)
        return ""

    def _default_provider(self, goal: Goal) -> str:
        run = self.run
        package = urns.package_of(goal.type)
        run.providers.check_known(package)
        provider_type = urns.PROVIDER_PREFIX + package
        urn = urns.make(run.stack, run.project, "", provider_type, default_provider_name(package, goal.version))
        with run.lock:
            instance = run.registered.get(urn)
            if instance is None:
                dynamic = package == "pulumi-python"
                inputs = run.config.as_properties("" if dynamic else package)
                if goal.version and not dynamic:
                    inputs["version"] = goal.version
                self._renaming.claim(urn)
                instance = self._provider_instance(ResourceState(urn, provider_type, custom=True, inputs=inputs))
                run.registered[urn] = instance
        return f"{instance.urn}::{_id_text(instance.id)}"

    def _provider_instance(self, goal: ResourceState) -> ResourceState:
        """A provider instance is a resource without anything behind it: its inputs configure what manages others."""
        goal, violated = self.policies.check_resource(self.run, goal, None)
        run = self.run
        if violated and not run.dry_run:
            self._block(goal.urn)
        public = {k: v for k, v in goal.inputs.items() if k != INTERNAL}
        old = self._olds.get(goal.urn)
        if old is None:
            now = run.store.now()
            made = replace(goal, id=UNKNOWN if run.dry_run else str(uuid.uuid4()), created=now, modified=now)
            made = replace(made, outputs=public)
            with run.step(info_of(Op.CREATE, new=made)):
                carry_out(run.hooks, "create", None, made, lambda: self._keep(made))
            return made
        decision = decide(old, goal, DiffResult(None, replaces=self._other_place(old, goal)))
        done = replace(goal, id=old.id, outputs=public, created=old.created, modified=old.modified, unused=old.unused)
        if decision.op is Op.REPLACE:
            done = replace(done, id=UNKNOWN if run.dry_run else str(uuid.uuid4()), created=run.store.now())
        if decision.op is not Op.SAME:
            done = replace(done, modified=run.store.now())
        # A replaced one stays until what it manages is deleted.
        condemns = old if decision.op is Op.REPLACE else None
        with run.step(_info(decision, old, done)):
            hooks = None if decision.op is Op.SAME else run.hooks
            operation: Operation = "create" if condemns else "update"
            before = None if condemns else old
            carry_out(hooks, operation, before, done, lambda: self._keep(done, unless=old, condemns=condemns))
        return done

    def _other_place(self, old: ResourceState, goal: ResourceState) -> tuple[str, ...]:
        """The settings by which a provider would now manage another place than before, such as another cluster."""
        if old.inputs == goal.inputs:
            return ()
        return self.run.providers.get(old).replaced_by(goal.inputs)

    def _resource(self, goal: ResourceState) -> ResourceState:
        old = self._olds.get(goal.urn)
        if old is not None:
            goal = replace(goal, unused=old.unused)
        if goal.urn in self._replacement.deleted:
            return self._create_after_deletion(goal)
        if old is not None and old.custom != goal.custom:
            raise StackError("it was a component and is now a custom resource, or the other way round: rename it")
        if not goal.custom:
            return self._component(old, goal)
        provider = self.run.provider_of(goal)
        resumed = self._resume(goal)
        old = resumed or old
        raw = goal.inputs
        if old is not None:
            raw = keep_old(raw, old.inputs, goal.ignore_changes)
        goal = replace(goal, inputs=self._check(provider, goal, old.inputs if old else {}, raw))
        if old is not None and goal.ignore_changes:
            goal = replace(goal, inputs=keep_old(goal.inputs, old.inputs, goal.ignore_changes))
        goal = self._policed(goal)
        if old is None:
            return self._create(goal, StepInfo(Op.CREATE, goal.urn, goal.type, None, goal))
        decision = self._decide(provider, old, goal)
        if decision.op is Op.SAME:
            done = replace(goal, id=old.id, outputs=old.outputs, created=old.created, modified=old.modified)
            if resumed is not None:
                # Its create was told already.
                self._keep(done, unless=old)
                return done
            with self.run.step(_info(decision, old, done)):
                self._keep(done, unless=old)
            return done
        if decision.op is Op.UPDATE:
            with self.run.step(_info(decision, old, goal)) as finish:
                done = apply.update(self.run, old, goal)
                finish(_info(decision, old, done))
            return done
        # A replacement is checked as if nothing had been: so it gets a new automatic name beside the old one's.
        fresh = replace(goal, inputs=self._check(provider, goal, {}, raw))
        if goal.ignore_changes:
            fresh = replace(fresh, inputs=keep_old(fresh.inputs, old.inputs, goal.ignore_changes))
        return self._replace(old, fresh, decision)

    def _resume(self, goal: ResourceState) -> ResourceState | None:
        """Finish the create that an earlier run was killed in: then it is an old resource like any other."""
        interrupted = self._interrupted.pop(goal.urn, None)
        if interrupted is None:
            return None
        # The hooks are those that this program has registered.
        return pending.resume(self.run, replace(interrupted, resource_hooks=goal.resource_hooks))

    def _component(self, old: ResourceState | None, goal: ResourceState) -> ResourceState:
        goal = self._policed(goal)
        now = self.run.store.now()
        if old is None:
            made = replace(goal, created=now, modified=now)
            with self.run.step(info_of(Op.CREATE, new=made)):
                self._begin_component("create", None, made)
                self._keep(made)
            return made
        decision = decide(old, goal, DiffResult(None))
        done = replace(goal, outputs=old.outputs, created=old.created, modified=old.modified)
        if decision.op is not Op.SAME:
            decision = replace(decision, op=Op.UPDATE)
            done = replace(done, modified=now)
        with self.run.step(_info(decision, old, done)):
            if decision.op is not Op.SAME:
                self._begin_component("update", old, done)
            self._keep(done, unless=old)
        return done

    def _begin_component(self, operation: Operation, old: ResourceState | None, new: ResourceState) -> None:
        """Run the hooks before it. Those after it wait for its outputs: then its children are done, too."""
        run = self.run
        if run.hooks is not None and new.resource_hooks:
            run.hooks.before(operation, old, new)
            with run.lock:
                self._begun[new.urn] = (operation, old)

    def _keep(
        self, resource: ResourceState, *, unless: ResourceState | None = None, condemns: ResourceState | None = None
    ) -> ResourceState:
        if not self.run.dry_run and resource != unless:
            self.run.store.put(resource, condemns=condemns)
        return resource

    def _check(self, provider: Provider, goal: ResourceState, olds: PropertyMap, news: PropertyMap) -> PropertyMap:
        result = provider.check(goal.urn, olds, news, preview=self.run.dry_run)
        if result.failures:
            # Each is one line; the resource's own name stands before them.
            lines = [f"{f.property}: {f.reason}" if f.property else f.reason for f in result.failures]
            raise StackError("\n".join(lines), goal.urn)
        return result.inputs

    def _policed(self, goal: ResourceState) -> ResourceState:
        goal, violated = self.policies.check_resource(self.run, goal, self._provider_state(goal))
        if violated and not self.run.dry_run:
            self._block(goal.urn)
        return goal

    def _block(self, urn: str) -> None:
        self.run.fail("blocked: it violates a mandatory policy", urn)
        raise Reported("a mandatory policy is violated", urn)

    def _provider_state(self, goal: ResourceState) -> ResourceState | None:
        with self.run.lock:
            return self.run.registered.get(goal.provider.rpartition("::")[0]) if goal.provider else None

    def _decide(self, provider: Provider, old: ResourceState, goal: ResourceState) -> Decision:
        diff = provider.diff(goal.urn, str(old.id), old.inputs, old.outputs, goal.inputs, goal.ignore_changes)
        asked = self.run.replaces is not None and self.run.replaces.names(goal.urn)
        return decide(old, goal, diff, ("id",) if asked else ())

    def _create_after_deletion(self, goal: ResourceState) -> ResourceState:
        old = self._olds[goal.urn]
        goal = replace(goal, inputs=self._check(self.run.provider_of(goal), goal, {}, goal.inputs))
        return self._create(self._policed(goal), StepInfo(Op.REPLACE, goal.urn, goal.type, old, goal))

    def _create(self, goal: ResourceState, step: StepInfo, replaces: ResourceState | None = None) -> ResourceState:
        with self.run.step(step) as finish:
            try:
                done = apply.create(self.run, goal, replaces=replaces)
            except PartialFailure as failure:
                raise ProviderError(f"it exists, but did not become ready: {failure}") from failure
            finish(replace(step, new=done))
        return done

    def _replace(self, old: ResourceState, goal: ResourceState, decision: Decision) -> ResourceState:
        step = _info(decision, old, goal)
        if not decision.delete_first:
            return self._create(goal, step, replaces=old)
        self._replacement.delete_first(old)
        return self._create(goal, step)


def _info(decision: Decision, old: ResourceState, new: ResourceState) -> StepInfo:
    return StepInfo(
        decision.op, new.urn, new.type, old, new, decision.replace_keys, decision.detailed, hidden=is_hidden(new)
    )


def _id_text(id: Value) -> str:
    return UNKNOWN_TEXT if id is UNKNOWN else str(id)
