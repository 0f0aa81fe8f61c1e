"""Checks resources with every policy pack: reports findings, and whether a mandatory rule is violated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from local.engine.events import PolicyEvent
from local.engine.policies.host import (
    AnalyzedOptions,
    AnalyzedProvider,
    AnalyzedResource,
    Finding,
    PolicyError,
    PolicyHost,
)
from local.engine.stack.resource import ResourceState
from local.engine.steps.run import Run, StackError
from local.plugins.urn import is_provider
from local.plugins.values import PropertyMap


class Policies:
    """The packs of a run. They start in the background; the first check waits for them."""

    def __init__(self, starts: Sequence[Callable[[], PolicyHost]] = ()) -> None:
        self.violated = False
        """Whether a mandatory rule was violated."""
        self._pool = ThreadPoolExecutor(max(len(starts), 1), thread_name_prefix="policy-pack")
        self._packs: list[Future[PolicyHost]] = [self._pool.submit(start) for start in starts]

    def versions(self) -> dict[str, str]:
        """The packs that ran, with their versions; one that did not start is not among them."""
        started = [pack.result() for pack in self._packs if pack.exception() is None]
        return {pack.name: pack.version for pack in started}

    def check_resource(
        self, run: Run, goal: ResourceState, provider: ResourceState | None
    ) -> tuple[ResourceState, bool]:
        """The goal after remediations, and whether it violates a mandatory rule. Raises StackError."""
        if not self._packs:
            return goal, False
        violated = False
        try:
            for pack in self._hosts():
                inputs, done = pack.remediate(analyzed(goal, provider, goal.inputs))
                for finding, remediated in done:
                    run.emit(PolicyEvent(finding, remediated))
                goal = replace(goal, inputs=inputs)
            for pack in self._hosts():
                # The SDK's own keys (`__provider`) are code, which rules must not see.
                public = {k: v for k, v in goal.inputs.items() if not k.startswith("__")}
                violated |= self._report(run, pack.analyze(analyzed(goal, provider, public)))
        except PolicyError as error:
            raise StackError(str(error), goal.urn) from error
        return goal, violated

    def check_stack(self, run: Run, resources: Sequence[ResourceState]) -> None:
        """Check the resources' outputs with the rules for whole stacks."""
        if not self._packs:
            return
        by_urn = {r.urn: r for r in resources}
        seen = [analyzed_for_stack(r, by_urn.get(r.provider.rpartition("::")[0])) for r in resources]
        violated = False
        try:
            for pack in self._hosts():
                violated |= self._report(run, pack.analyze_stack(seen))
        except PolicyError as error:
            run.fail(str(error))
            return
        if violated:
            run.failed = True

    def close(self) -> None:
        """End the packs' processes."""
        for pack in self._packs:
            if pack.exception() is None:
                pack.result().close()
        self._pool.shutdown()

    def _hosts(self) -> list[PolicyHost]:
        try:
            return [pack.result() for pack in self._packs]
        except PolicyError as error:
            raise StackError(str(error)) from error

    def _report(self, run: Run, findings: Sequence[Finding]) -> bool:
        for finding in findings:
            run.emit(PolicyEvent(finding))
        # A failed remediation is a violation like any other.
        mandatory = any(f.level in ("mandatory", "remediate") for f in findings)
        self.violated = self.violated or mandatory
        return mandatory


def analyzed_for_stack(resource: ResourceState, provider: ResourceState | None) -> AnalyzedResource:
    """The resource as the rules for whole stacks see it: with outputs and dependencies."""
    public = {k: v for k, v in resource.outputs.items() if not k.startswith("__")}
    return replace(
        analyzed(resource, provider, public),
        parent=resource.parent,
        dependencies=resource.dependencies,
        # A property without dependencies is omitted.
        property_dependencies={k: v for k, v in resource.property_dependencies.items() if v},
    )


def analyzed(resource: ResourceState, provider: ResourceState | None, properties: PropertyMap) -> AnalyzedResource:
    """The resource with these properties as the rules for single resources see it."""
    return AnalyzedResource(
        type=resource.type,
        urn=resource.urn,
        name=resource.name,
        properties=properties,
        options=AnalyzedOptions(
            protect=resource.protect,
            ignore_changes=resource.ignore_changes,
            delete_before_replace=resource.delete_before_replace,
            additional_secret_outputs=resource.additional_secret_outputs,
            create_timeout=resource.timeouts.create,
            update_timeout=resource.timeouts.update,
            delete_timeout=resource.timeouts.delete,
        ),
        provider=_provider(provider) if provider is not None and not is_provider(resource.type) else None,
        parent=resource.parent,
    )


def _provider(provider: ResourceState) -> AnalyzedProvider:
    public = {k: v for k, v in provider.inputs.items() if not k.startswith("__")}
    return AnalyzedProvider(provider.type, provider.urn, provider.name, public)
