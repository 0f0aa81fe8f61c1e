"""What is simulated: the resources of recorded packages, and everything made of their values.

A Kubernetes provider whose kubeconfig comes from a recorded cluster has no cluster to reach, and a dynamic resource
with a recorded network has no network: what they manage is recorded as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from local.engine.stack.resource import ResourceState
from local.engine.steps.run import Run
from local.plugins.provider import Provider
from local.plugins.recorder import PartlyRecorded, Recorder
from local.plugins.urn import is_provider, package_of
from local.plugins.values import UNKNOWN

DYNAMIC: Final = "pulumi-python"
"""The package of dynamic resources."""


def is_simulated(run: Run, resource: ResourceState) -> bool:
    """Whether nothing real is or will be behind a resource, by its state or by the values that it is made of."""
    if not resource.custom:
        return False
    if resource.outputs and not is_provider(resource.type):
        return resource.simulated
    if simulated_inputs(run, resource):
        return True
    if is_provider(resource.type):
        return isinstance(instance(run, resource), Recorder)
    provider = _known(run, resource.provider.rpartition("::")[0])
    if provider is None:
        return False
    return is_simulated(run, provider) or _is_left_out(instance(run, provider), resource.type)


def simulated_inputs(run: Run, resource: ResourceState) -> frozenset[str]:
    """The inputs that are made of simulated values."""
    return frozenset(
        key
        for key, urns in resource.property_dependencies.items()
        if any((known := _known(run, urn)) is not None and is_simulated(run, known) for urn in urns)
    )


def settings_of(run: Run, provider: ResourceState) -> ResourceState:
    """A provider resource as its package may see it: simulated settings are unknown."""
    hidden = simulated_inputs(run, provider)
    return replace(provider, inputs={k: UNKNOWN if k in hidden else v for k, v in provider.inputs.items()})


def instance(run: Run, state: ResourceState) -> Provider:
    """The provider instance that a provider resource stands for. Raises ProviderError."""
    if package_of(state.type) == DYNAMIC and state.urn not in run.registered:
        # Without the program, the state has the config of an earlier run, whose credentials may have been rotated.
        state = replace(state, inputs=run.config.as_properties())
    return run.providers.get(settings_of(run, state))


def _is_left_out(provider: Provider, type: str) -> bool:
    return isinstance(provider, PartlyRecorded) and type in provider.recorded_types


def _known(run: Run, urn: str) -> ResourceState | None:
    with run.lock:
        found = run.registered.get(urn)
    return found or run.store.snapshot.resources.get((urn, ""))
