"""What manages a resource: its provider instance or, for a simulated resource, a recorder."""

from __future__ import annotations

from local.engine.stack.resource import ResourceState
from local.engine.steps.run import Run, StackError
from local.engine.steps.simulation import DYNAMIC, instance, is_simulated, simulated_inputs
from local.plugins.provider import Provider, ProviderError
from local.plugins.recorder import PartlyRecorded, Recorder, StandIn
from local.plugins.recorder_values import Rules
from local.plugins.urn import package_of


def provider_of(run: Run, resource: ResourceState) -> Provider:
    """The resource's provider instance, or the recorder that stands in for it if the resource is simulated.

    Raises StackError if the state does not know the instance.
    """
    urn, _, identity = resource.provider.rpartition("::")
    with run.lock:
        state = run.registered.get(urn)
        if state is None or str(state.id) != identity:
            # The provider may have been replaced: the old instance must delete what it created.
            state = _from_state(run, urn, identity) or state
    if state is None:
        raise StackError(f"its provider {urn} is not in the state", resource.urn)
    try:
        provider = instance(run, state)
        if is_simulated(run, resource):
            return _recorder_for(run, resource, provider)
        _check_real(resource, provider)
        return provider
    except ProviderError as error:
        raise StackError(str(error), resource.urn) from error


def _recorder_for(run: Run, resource: ResourceState, provider: Provider) -> Provider:
    # The `check` of a dynamic resource may call what its inputs point to.
    may_call = package_of(resource.type) == DYNAMIC
    if isinstance(provider, StandIn):
        return provider.hiding(simulated_inputs(run, resource)) if may_call else provider
    if isinstance(provider, Recorder):
        return provider
    rules = Rules()
    if isinstance(provider, PartlyRecorded):
        if resource.type in provider.recorded_types:
            return provider.recorder
        rules = provider.recorder.rules
    return StandIn(provider, simulated_inputs(run, resource) if may_call else (), rules)


def _check_real(resource: ResourceState, provider: Provider) -> None:
    """Raise ProviderError if a recorder would manage a real resource: the resource would be forgotten."""
    if isinstance(provider, Recorder):
        package = package_of(resource.type)
        raise ProviderError(
            f"it exists, but this run would only simulate package {package}: manage it where it was created "
            "(with Pulumi's CLI, or with the provider's earlier `endpoints`)"
        )


def _from_state(run: Run, urn: str, identity: str) -> ResourceState | None:
    matches = [r for r in run.store.snapshot.all() if r.urn == urn]
    exact = next((r for r in matches if r.id == identity), None)
    return exact if exact or urn in run.registered else next(iter(matches), None)
