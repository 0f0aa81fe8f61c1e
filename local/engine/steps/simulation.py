"""What is simulated: the resources of packages that are only recorded, and whatever is made of their values.

So a Kubernetes provider whose kubeconfig comes from a recorded cluster reaches nothing, and neither does a dynamic
resource that is told a recorded network; what they manage is recorded as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from local.engine.providers.provider import PartlyRecorded, Provider, ProviderError
from local.engine.providers.recorder import Recorder, StandIn
from local.engine.stack.resource import ResourceState
from local.engine.urn import is_provider, package_of
from local.engine.values import UNKNOWN

if TYPE_CHECKING:
    from local.engine.steps.run import Run

_LOOKING: Final = frozenset({"pulumi-python"})
"""Packages whose `check` may go and look where its inputs point to."""


def is_simulated(run: Run, resource: ResourceState) -> bool:
    """Whether there is, or will be, nothing real behind a resource: its state says so, or what it is made of does."""
    if not resource.custom:
        return False
    if resource.outputs and not is_provider(resource.type):
        return resource.simulated
    if simulated_inputs(run, resource):
        return True
    if is_provider(resource.type):
        return isinstance(run.instance(resource), Recorder)
    provider = _known(run, resource.provider.rpartition("::")[0])
    return provider is not None and (is_simulated(run, provider) or _is_left_out(run.instance(provider), resource.type))


def simulated_inputs(run: Run, resource: ResourceState) -> frozenset[str]:
    """The inputs that are made of simulated values."""
    return frozenset(
        key
        for key, urns in resource.property_dependencies.items()
        if any((known := _known(run, urn)) is not None and is_simulated(run, known) for urn in urns)
    )


def settings_of(run: Run, provider: ResourceState) -> ResourceState:
    """A provider instance's resource as its package may see it: a simulated setting counts as unknown."""
    hidden = simulated_inputs(run, provider)
    return replace(provider, inputs={k: UNKNOWN if k in hidden else v for k, v in provider.inputs.items()})


def standing_in(run: Run, resource: ResourceState, provider: Provider) -> Provider:
    """Who manages a simulated resource in the place of its package's provider."""
    if isinstance(provider, Recorder):
        return provider
    if isinstance(provider, PartlyRecorded) and resource.type in provider.recorded_types:
        return provider.recorder
    looks = package_of(resource.type) in _LOOKING
    return StandIn(provider, simulated_inputs(run, resource) if looks else ())


def check_real(resource: ResourceState, provider: Provider) -> None:
    """Raise ProviderError if a resource that is real would be managed by what only records: it would be forgotten."""
    if isinstance(provider, Recorder):
        package = package_of(resource.type)
        raise ProviderError(
            f"it is real, and the embedded engine only records {package} here: manage it where it was made "
            "(with Pulumi's CLI, or with the provider's `endpoints` as they were)"
        )


def _is_left_out(provider: Provider, type: str) -> bool:
    return isinstance(provider, PartlyRecorded) and type in provider.recorded_types


def _known(run: Run, urn: str) -> ResourceState | None:
    with run.lock:
        found = run.registered.get(urn)
    return found or run.store.snapshot.resources.get((urn, ""))
