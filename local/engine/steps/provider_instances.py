"""Finds the provider instance that manages a resource, and registers the instances, which are resources, too."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from local.engine.program.goal import Goal
from local.engine.stack.resource import ResourceState
from local.engine.steps.hooked import Operation, carry_out
from local.engine.steps.planner import Op, decide, default_provider_name
from local.engine.steps.registration import Steps, step_of
from local.engine.steps.run import Reported, Run, StackError, info_of
from local.engine.steps.simulation import instance, settings_of
from local.plugins import urn as urns
from local.plugins.provider import DiffResult, ProviderError
from local.plugins.values import UNKNOWN, PropertyMap, Value
from local.plugins.wire import UNKNOWN_TEXT

INTERNAL: Final = "__internal"


class ProviderInstances:
    """The provider instances of one run of the program. Safe from several threads."""

    def __init__(self, run: Run, steps: Steps, olds: Mapping[str, ResourceState], claim: Callable[[str], None]) -> None:
        """`claim` records that a URN is registered."""
        self._run = run
        self._steps = steps
        self._olds = olds
        self._claim = claim
        self._given: dict[str, Mapping[str, str]] = {}

    def give(self, urn: str, providers: Mapping[str, str]) -> None:
        """Record the providers that a registered resource passes to its children, by package."""
        with self._run.lock:
            self._given[urn] = providers

    def of(self, goal: Goal) -> str:
        """The reference, `URN::ID`, to the instance that manages a custom resource: its own, its parent's or a default.

        Raises ProviderError for a package without a provider here.
        """
        return goal.provider or self._inherited(goal) or self.default(urns.package_of(goal.type), goal.version)

    @staticmethod
    def inputs_of(goal: Goal) -> PropertyMap:
        """The inputs of a provider instance as the state keeps them."""
        return {INTERNAL: {}, **goal.inputs} | ({"version": goal.version} if goal.version else {})

    def _inherited(self, goal: Goal) -> str:
        package = urns.package_of(goal.type)
        with self._run.lock:
            parent = self._run.registered.get(goal.parent)
            while parent is not None:
                if reference := self._given.get(parent.urn, {}).get(package):
                    return reference
                if parent.provider and urns.package_of(parent.type) == package:
                    return parent.provider
                parent = self._run.registered.get(parent.parent)
        return ""

    def default(self, package: str, version: str) -> str:
        """The reference to the default instance. Raises ProviderError as `of` does."""
        run = self._run
        run.providers.check_known(package)
        provider_type = urns.PROVIDER_PREFIX + package
        urn = urns.make(run.stack, run.project, "", provider_type, default_provider_name(package, version))
        with run.lock:
            instance = run.registered.get(urn)
            if urn in run.errored:
                raise Reported(f"{urn} could not be registered", urn)
            if instance is None:
                dynamic = package == "pulumi-python"
                inputs = run.config.as_properties("" if dynamic else package)
                if version and not dynamic:
                    inputs["version"] = version
                self._claim(urn)
                try:
                    instance = self.register(ResourceState(urn, provider_type, custom=True, inputs=inputs))
                except (StackError, ProviderError):
                    run.errored.add(urn)
                    raise
                run.registered[urn] = instance
        return f"{instance.urn}::{_id_text(instance.id)}"

    def register(self, goal: ResourceState) -> ResourceState:
        """A provider instance has no object behind it: its inputs configure how others are managed."""
        run = self._run
        goal = self._steps.check_policies(goal)
        public = {k: v for k, v in goal.inputs.items() if k != INTERNAL}
        old = self._steps.left(goal.urn)
        if old is None:
            now = run.store.now()
            made = replace(goal, id=UNKNOWN if run.dry_run else str(uuid.uuid4()), created=now, modified=now)
            made = replace(made, outputs=public)
            with run.step(info_of(Op.REPLACE if goal.urn in self._olds else Op.CREATE, new=made)):
                carry_out(run.hooks, "create", None, made, lambda: self._steps.keep(made))
            return made
        decision = decide(old, goal, DiffResult(None, replaces=self._other_place(old, goal)))
        done = replace(goal, id=old.id, outputs=public, created=old.created, modified=old.modified, unused=old.unused)
        if decision.op is Op.REPLACE:
            done = replace(done, id=UNKNOWN if run.dry_run else str(uuid.uuid4()), created=run.store.now())
        if decision.op is not Op.SAME:
            done = replace(done, modified=run.store.now())
        # A replaced instance stays until its resources are deleted.
        replaced = old if decision.op is Op.REPLACE else None
        with run.step(step_of(decision, old, done)):
            hooks = None if decision.op is Op.SAME else run.hooks
            operation: Operation = "create" if replaced else "update"
            before = None if replaced else old
            carry_out(hooks, operation, before, done, lambda: self._steps.keep(done, unless=old, replaced=replaced))
        return done

    def _other_place(self, old: ResourceState, goal: ResourceState) -> tuple[str, ...]:
        """The changed settings that make a provider manage another place, such as another cluster."""
        if old.inputs == goal.inputs:
            return ()
        return instance(self._run, old).replaced_by(settings_of(self._run, goal).inputs)


def _id_text(id: Value) -> str:
    return UNKNOWN_TEXT if id is UNKNOWN else str(id)
