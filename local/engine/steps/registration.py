"""The steps of one registered resource: check, policies, diff, and the resulting step."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import replace

from local.engine.events import Diagnostic, StepInfo
from local.engine.policies.packs import Policies
from local.engine.stack.resource import ResourceState, with_secret_outputs
from local.engine.steps import apply, importing, pending
from local.engine.steps.hooked import Operation
from local.engine.steps.managers import provider_of
from local.engine.steps.planner import Decision, Op, ProtectedError, decide, diff_request, is_hidden
from local.engine.steps.replacement import Replacement
from local.engine.steps.run import Reported, Run, StackError, info_of
from local.engine.steps.simulation import is_simulated
from local.plugins.paths import keep_old
from local.plugins.provider import DiffResult, PartialFailure, Provider, ProviderError
from local.plugins.values import PropertyMap


class Steps:
    """Carries out the steps of resources in one run of the program. Safe from several threads."""

    def __init__(
        self,
        run: Run,
        policies: Policies,
        replacement: Replacement,
        olds: Mapping[str, ResourceState],
        interrupted: MutableMapping[str, ResourceState],
    ) -> None:
        """`olds`: the state's resources by URN; `interrupted`: the creates of a killed run."""
        self._run = run
        self._policies = policies
        self._replacement = replacement
        self._olds = olds
        self._interrupted = interrupted
        self.begun: dict[str, tuple[Operation, ResourceState | None]] = {}
        """Components whose hooks after the step are still to run, with the step's operation and old state."""

    def left(self, urn: str) -> ResourceState | None:
        """The old resource under this URN; None if it was deleted ahead of its turn."""
        return None if urn in self._replacement.deleted else self._olds.get(urn)

    def resource(self, goal: ResourceState, import_id: str = "") -> ResourceState:
        """Carry out the step of a custom resource or component; `import_id` names an existing object to import.

        Raises StackError, ProviderError, ProtectedError.
        """
        old = self._olds.get(goal.urn)
        if old is not None:
            goal = replace(goal, unused=old.unused)
        if goal.urn in self._replacement.deleted:
            return self._create_after_deletion(goal)
        if old is not None and old.custom != goal.custom:
            raise StackError("it changed between component and custom resource: rename it")
        if not goal.custom:
            return self.component(old, goal)
        provider = provider_of(self._run, goal)
        resumed = self._resume(goal)
        old = resumed or old
        if importing.is_wanted(old, import_id):
            return self._import(provider, old, goal, import_id)
        raw = goal.inputs
        if old is None or old.external or old.pending_replacement:
            # The old one was external: release it, and create one of our own.
            goal = self.check_policies(replace(goal, inputs=self._check(provider, goal, {}, raw), unused={}))
            step = StepInfo(Op.REPLACE if old else Op.CREATE, goal.urn, goal.type, old, goal)
            return self._create(goal, step, old if old is not None and old.external else None)
        kept = keep_old(raw, old.inputs, goal.ignore_changes)
        checked = self._check(provider, goal, old.inputs, kept)
        goal = self.check_policies(replace(goal, inputs=checked))
        remediated = goal.inputs != checked
        decision = self._decide(provider, old, goal)
        if decision.op is not Op.REPLACE:
            goal = replace(goal, import_id=old.import_id)
        if decision.op is Op.SAME:
            done = replace(goal, id=old.id, outputs=old.outputs, created=old.created, modified=old.modified)
            # The program may call more of it secret than before, which is no change for the provider.
            done = with_secret_outputs(done, from_inputs=True)
            if resumed is not None:
                # Its create was reported already.
                self.keep(done, unless=old)
                return done
            with self._run.step(step_of(decision, old, done)):
                self.keep(done, unless=old)
            return done
        if decision.op is Op.UPDATE:
            with self._run.step(step_of(decision, old, goal)) as finish:
                done = apply.update(self._run, old, goal)
                finish(step_of(decision, old, done))
            return done
        if import_id:
            self._refuse_to_replace_imported(goal.urn)
        # A replacement is checked without the old inputs: so it gets a new automatic name and the program's values of
        # ignored properties.
        created = replace(goal, inputs=self._check(provider, goal, {}, raw), unused={})
        return self._replace(old, self.check_policies(created) if remediated else created, decision)

    def _import(
        self, provider: Provider, old: ResourceState | None, goal: ResourceState, import_id: str
    ) -> ResourceState:
        def complete(goal: ResourceState, olds: PropertyMap) -> ResourceState:
            return self.check_policies(replace(goal, inputs=self._check(provider, goal, olds, goal.inputs)))

        if old is not None:
            self._replacement.replaced.add(goal.urn)
        return importing.take_over(self._run, provider, old, goal, import_id, complete)

    def _refuse_to_replace_imported(self, urn: str) -> None:
        message = "an imported resource that still has the option `import_` cannot be replaced: remove the option"
        if not self._run.dry_run:
            raise StackError(message, urn)
        self._run.emit(Diagnostic("warning", message, urn))

    def _resume(self, goal: ResourceState) -> ResourceState | None:
        """Finish the create of a killed run; it is then an old resource like any other."""
        interrupted = self._interrupted.pop(goal.urn, None)
        if interrupted is None:
            return None
        # This program's hooks run.
        return pending.resume(self._run, replace(interrupted, resource_hooks=goal.resource_hooks))

    def component(self, old: ResourceState | None, goal: ResourceState) -> ResourceState:
        goal = self.check_policies(goal)
        now = self._run.store.now()
        if old is None:
            made = replace(goal, created=now, modified=now)
            with self._run.step(info_of(Op.CREATE, new=made)):
                self._begin_component("create", None, made)
                self.keep(made)
            return made
        decision = decide(old, goal, DiffResult(None))
        done = replace(goal, outputs=old.outputs, created=old.created, modified=old.modified)
        if decision.op is not Op.SAME:
            decision = replace(decision, op=Op.UPDATE)
            done = replace(done, modified=now)
        with self._run.step(step_of(decision, old, done)):
            if decision.op is not Op.SAME:
                self._begin_component("update", old, done)
            self.keep(done, unless=old)
        return done

    def _begin_component(self, operation: Operation, old: ResourceState | None, new: ResourceState) -> None:
        """Run the hooks before it. Those after it wait for its outputs, when its children are done, too."""
        run = self._run
        if run.hooks is not None and new.resource_hooks:
            run.hooks.before(operation, old, new)
            with run.lock:
                self.begun[new.urn] = (operation, old)

    def keep(
        self, resource: ResourceState, *, unless: ResourceState | None = None, replaced: ResourceState | None = None
    ) -> ResourceState:
        if not self._run.dry_run and resource != unless:
            self._run.store.put(resource, replaced=replaced)
        return resource

    def _check(self, provider: Provider, goal: ResourceState, olds: PropertyMap, news: PropertyMap) -> PropertyMap:
        result = provider.check(goal.urn, olds, news)
        if result.failures:
            # One line each; the resource's name precedes them.
            lines = [f"{f.property}: {f.reason}" if f.property else f.reason for f in result.failures]
            raise StackError("\n".join(lines), goal.urn)
        return result.inputs

    def check_policies(self, goal: ResourceState) -> ResourceState:
        goal, violated = self._policies.check_resource(self._run, goal, self._provider_state(goal))
        if violated and not self._run.dry_run:
            self._block(goal.urn)
        return goal

    def _block(self, urn: str) -> None:
        self._run.fail("blocked by a mandatory policy", urn)
        raise Reported("a mandatory policy is violated", urn)

    def _provider_state(self, goal: ResourceState) -> ResourceState | None:
        with self._run.lock:
            return self._run.registered.get(goal.provider.rpartition("::")[0]) if goal.provider else None

    def _decide(self, provider: Provider, old: ResourceState, goal: ResourceState) -> Decision:
        diff = provider.diff(diff_request(old, goal))
        forced = []
        if self._run.replaces is not None and self._run.replaces.names(goal.urn):
            forced.append("id")
        if self._replacement.replaced & {*goal.replace_with}:
            forced.append("replaceWith")
        if old.simulated != is_simulated(self._run, goal):
            # Nothing real becomes of what was simulated, nor the other way round; the old one's provider deletes it.
            provider_of(self._run, old)
            forced.append("simulated")
        try:
            return decide(old, goal, diff, forced)
        except ProtectedError as error:
            if not self._run.dry_run:
                raise
            # A preview shows the cause of the replacement and the remaining changes.
            self._run.fail(str(error), goal.urn)
            return decide(replace(old, protect=False), goal, diff, forced)

    def _create_after_deletion(self, goal: ResourceState) -> ResourceState:
        old = self._olds[goal.urn]
        self._replacement.replaced.add(goal.urn)
        # What a killed run was creating is another object, to be deleted at the end.
        resumed = self._resume(goal)
        goal = replace(goal, inputs=self._check(provider_of(self._run, goal), goal, {}, goal.inputs))
        return self._create(self.check_policies(goal), StepInfo(Op.REPLACE, goal.urn, goal.type, old, goal), resumed)

    def _create(self, goal: ResourceState, step: StepInfo, replaces: ResourceState | None = None) -> ResourceState:
        with self._run.step(step) as finish:
            try:
                done = apply.create(self._run, goal, replaces=replaces)
            except PartialFailure as failure:
                raise ProviderError(f"it exists, but did not become ready: {failure}") from failure
            finish(replace(step, new=done))
        return done

    def _replace(self, old: ResourceState, goal: ResourceState, decision: Decision) -> ResourceState:
        step = step_of(decision, old, goal)
        self._replacement.replaced.add(goal.urn)
        if not decision.delete_first:
            return self._create(goal, step, replaces=old)
        self._replacement.delete_first(old)
        return self._create(goal, step)


def step_of(decision: Decision, old: ResourceState, new: ResourceState) -> StepInfo:
    """The step of a decision."""
    return StepInfo(
        decision.op, new.urn, new.type, old, new, decision.replace_keys, decision.detailed, hidden=is_hidden(new)
    )
