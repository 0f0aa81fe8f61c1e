"""Plans a commit's stack without state, secrets and network: every provider is a recorder.

Providers that run here (Kubernetes, dynamic resources) still check inputs and say what a change replaces. Simulated
values are known in the plan, so that it holds the policies and addresses that are made of them; a second commit is
planned against the resources of the first, as if those existed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from local.clouds import CLOUDS
from local.engine.events import Event, StepDone
from local.engine.interpreter import Interpreter
from local.engine.operations import Options, preview
from local.engine.program.monitor import Monitor
from local.engine.program.runner import ProgramRun, run_in_subprocess
from local.engine.program.served import Served
from local.engine.providers.dynamic import DynamicProvider
from local.engine.providers.registry import OTHERS, InstanceFactory
from local.engine.stack.project import load_project, load_stack_file
from local.engine.stack.resource import ResourceState
from local.engine.stack.session import Request, Session
from local.engine.steps.planner import Op
from local.plugins.dynamic import DynamicServer
from local.plugins.provider import Provider, ProviderFactory
from local.plugins.recorder import Recorder, StandIn
from local.plugins.recorder_values import Rules, load_sdk
from local.plugins.urn import package_of
from local.plugins.values import UNKNOWN

NO_STATE = Path("/nonexistent")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit's project in a folder, and the Python with its requirements."""

    project: Path
    interpreter: Interpreter


@dataclass(frozen=True, slots=True)
class Plan:
    """What one commit would do to a stack, from the resources that another one left or from none."""

    ok: bool
    events: tuple[Event, ...]
    resources: tuple[ResourceState, ...]
    """What exists afterwards."""


def plan(
    checkout: Checkout,
    stack: str,
    packs: Sequence[tuple[Path, Mapping[str, Any] | None]],
    before: Sequence[ResourceState] = (),
) -> Plan:
    """Plan a stack. `packs`: the policy packs' folders and configurations.

    Raises ProjectError, SecretsError, OSError: the stack file cannot be used.
    """
    events: list[Event] = []
    request = Request(
        checkout.project,
        stack,
        NO_STATE,
        placeholder_secrets=True,
        added=placeholders(checkout.project, stack),
        resources=before,
    )
    options = Options(
        partial(OfflineProviders, checkout.interpreter),
        packs,
        run_program=partial(_run_program, checkout.interpreter),
        interpreter=checkout.interpreter,
    )
    ok = preview(request, options, events.append)
    done = [event.step for event in events if isinstance(event, StepDone)]
    gone = {step.urn for step in done if step.op is Op.DELETE}
    left = {step.urn: step.new for step in done if step.new is not None and step.urn not in gone}
    return Plan(ok, tuple(events), tuple(left.values()))


def placeholders(project: Path, stack: str) -> dict[str, Any]:
    """The config that only a site of this machine would add to the stack file."""
    loaded = load_project(project)
    config = load_stack_file(loaded, stack).config
    name = config.get(f"{loaded.name}:cloud")
    if name not in CLOUDS.names():
        return {}
    cloud = CLOUDS.get(str(name))
    if not cloud.serves(config.get(f"{loaded.name}:{name}")):
        return {}
    added = {}
    for key, value in cloud.placeholders.items():
        found = config.get(key)
        if found is None:
            added[key] = value
        elif isinstance(found, dict) and "secure" not in value and not value.keys() & found.keys():
            # A section with some of these keys belongs to a cloud of its own, which no site completes.
            added[key] = {**value, **found}
    return added


class OfflineProviders:
    """A recorder for every package; those with a provider here let it check inputs and compare them."""

    def __init__(self, interpreter: Interpreter, session: Session, on_line: Callable[[str], None]) -> None:
        self._config = session.config.as_properties()
        self._server = DynamicServer(
            session.project.main, session.project.name, on_line, interpreter.path, interpreter.environment()
        )

    def factories(self) -> Mapping[str, InstanceFactory]:
        """By package."""
        clouds = {
            package: partial(_of_cloud, factory)
            for cloud in CLOUDS.all()
            for package, factory in cloud.providers.items()
        }
        return {**clouds, "pulumi-python": self._dynamic, "kubernetes": _kubernetes, OTHERS: _recorded}

    def close(self) -> None:
        """End the dynamic provider's server."""
        self._server.close()

    def _dynamic(self, resource: ResourceState) -> Provider:
        provider = DynamicProvider(self._server, resource.inputs, resource.urn, str(resource.id))
        return _foreseeing(StandIn(provider, (), Rules()))


def _kubernetes(resource: ResourceState) -> Provider:
    from local.plugins.kubernetes.provider import KubernetesProvider

    # Also one whose kubeconfig is in the program: no cluster is asked.
    provider = KubernetesProvider({**resource.inputs, "kubeconfig": UNKNOWN})
    return _foreseeing(StandIn(provider, (), Rules()))


def _of_cloud(factory: ProviderFactory, resource: ResourceState) -> Provider:
    load_sdk(package_of(resource.type))
    made = factory({k: v for k, v in resource.inputs.items() if k != "endpoints"})
    return _foreseeing(made if isinstance(made, Recorder) else Recorder(resource.inputs))


def _recorded(resource: ResourceState) -> Provider:
    load_sdk(package_of(resource.type))
    return _foreseeing(Recorder(resource.inputs))


def _foreseeing(recorder: Recorder) -> Recorder:
    recorder.foresees = True
    return recorder


def _run_program(
    interpreter: Interpreter, program: ProgramRun, monitor: Monitor, on_line: Callable[[str], None]
) -> str | None:
    served = Served(monitor)
    try:
        return run_in_subprocess(program, served.address, on_line, interpreter)
    finally:
        served.close()
