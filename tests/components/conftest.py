"""Runs a program in this process against a monitor that records what it registers, and makes nothing."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pytest
from google.protobuf import empty_pb2, json_format
from pulumi.runtime import Settings, configure, rpc
from pulumi.runtime.proto import engine_pb2, resource_pb2

from components.stack_config import SECRET_KEYS
from local.plugins import urn
from local.plugins.kubernetes.api_types import parse_type
from local.plugins.kubernetes.normal_form import in_normal_form
from local.plugins.wire import from_struct

PROJECT, STACK = "cloud-controller", "local"
STACK_TYPE = "pulumi:pulumi:Stack"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
SIGNATURE = "4dabf18193072939515e22adb298388d"


@dataclass
class Registration:
    """What the program asked for."""

    urn: str
    request: Any

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs as JSON; unknowns and secrets as on the wire."""
        return dict(json_format.MessageToDict(self.request.object))


@dataclass
class Recording:
    """Everything that a program registered, in order, and its outputs."""

    registrations: list[Registration] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def urns(self) -> list[str]:
        return [r.urn for r in self.registrations]

    def known_as(self) -> set[str]:
        """Every URN under which Pulumi finds one of the resources in a state: the present ones, and by alias.

        Of aliases as far as the program has any: by name or type, its own and those that it has from its parents.
        """
        known: dict[str, set[str]] = {"": {""}}
        for each in self.registrations:
            request = each.request
            specs = [alias.spec for alias in request.aliases]
            own = {(spec.type or request.type, spec.name or request.name) for spec in specs}
            known[each.urn] = {
                f"urn:pulumi:{STACK}::{PROJECT}::{_qualified(parent, type_)}::{_under(name, request.parent, parent)}"
                for parent in known[request.parent]
                for type_, name in {(request.type, request.name), *own}
            }
        return set().union(*known.values()) - {""}

    def respelt(self) -> dict[str, Any]:
        """The Kubernetes objects whose inputs the provider's check would change, with what it would make of them."""
        found = {}
        for each in self.registrations:
            if each.request.type.startswith("kubernetes:"):
                inputs = from_struct(each.request.object)
                if (normal := in_normal_form(parse_type(each.request.type), inputs)) != inputs:
                    found[each.urn] = normal
        return found

    def one(self, type_: str, name: str) -> Registration:
        """The resource of this type token and name."""
        [found] = [r for r in self.registrations if r.request.type == type_ and r.request.name == name]
        return found

    def dependencies(self, urn: str) -> set[str]:
        """All that the resource waits for, directly or not, by itself or by its parents."""
        by_urn = {r.urn: r for r in self.registrations}
        found: set[str] = set()
        todo = [urn]
        while todo:
            request = by_urn[todo.pop()].request
            following = {*request.dependencies, request.parent} - {""} - found
            found |= following
            todo += following
        return found


def _qualified(parent: str, type_: str) -> str:
    """The types of a resource's parents, but for the stack's, before its own."""
    above = parent.split("::")[2] if parent else STACK_TYPE
    return type_ if above == STACK_TYPE else f"{above}${type_}"


def _under(name: str, parent: str, former: str) -> str:
    """The name of a child whose parent had a former one; if it began with the parent's name, then so did that."""
    if parent and name.startswith(urn.name_of(parent)):
        return urn.name_of(former) + name.removeprefix(urn.name_of(parent))
    return name


class RecordingMonitor:
    """Answers as an engine's preview of an empty stack does: no ids, outputs are inputs.

    With `outputs` (by token) it answers as if everything was made: with ids, and these outputs too; with `missing`
    as a preview where all but the resources of these types was.
    """

    def __init__(self, outputs: Mapping[str, Any] | None, missing: Collection[str] = ()) -> None:
        self.recording = Recording()
        self._types: dict[str, str] = {}
        self._outputs = outputs
        self._missing = missing
        self._lock = threading.Lock()

    def GetDeploymentInfo(self, _: object) -> Any:  # noqa: N802
        features = [
            resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
            resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
            resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
            resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
        ]
        return resource_pb2.DeploymentInfo(supportedFeatures=features)

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        with self._lock:
            parent = self._types.get(request.parent, "")
            qualified = f"{parent}${request.type}" if parent and parent != STACK_TYPE else request.type
            urn = f"urn:pulumi:{STACK}::{PROJECT}::{qualified}::{request.name}"
            self._types[urn] = qualified
            recorded = resource_pb2.RegisterResourceRequest()
            recorded.CopyFrom(request)
            self.recording.registrations.append(Registration(urn, recorded))
        if self._outputs is None or request.type in self._missing:
            return resource_pb2.RegisterResourceResponse(urn=urn, object=request.object)
        request.object.update(self._outputs.get(request.type, {}))
        id_ = f"{request.name}-id" if request.custom else ""
        return resource_pb2.RegisterResourceResponse(urn=urn, id=id_, object=request.object)

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        """As if the function `tok` returned what `outputs` has under its token."""
        answer = resource_pb2.ResourceInvokeResponse()
        getattr(answer, "return").update((self._outputs or {})[request.tok])
        return answer

    def RegisterResourceHook(self, _: object) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        if self._types[request.urn] == STACK_TYPE:
            self.recording.outputs = json_format.MessageToDict(request.outputs)
        return empty_pb2.Empty()

    def SignalAndWaitForShutdown(self, _: object) -> Any:  # noqa: N802
        return empty_pb2.Empty()


class SilentEngine:
    """Drops the program's log."""

    def Log(self, _: object) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def RequirePulumiVersion(self, _: object) -> Any:  # noqa: N802
        return engine_pb2.RequirePulumiVersionResponse()


RunProgram = Callable[..., Recording]


@pytest.fixture
def run_program() -> RunProgram:
    """Run a function as a program: `run_program(function, config, outputs, missing)`; see RecordingMonitor."""

    def run(
        program: Callable[[], object],
        config: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        missing: Collection[str] = (),
    ) -> Recording:
        monitor = RecordingMonitor(outputs, missing)

        def isolated() -> None:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            texts = {f"cloud-controller:{key}": _text(value) for key, value in (config or {}).items()}
            pulumi.runtime.set_all_config(texts, [f"cloud-controller:{key}" for key in SECRET_KEYS])
            pulumi.runtime.settings.ROOT.set(None)
            configure(
                Settings(
                    project=PROJECT,
                    stack=STACK,
                    monitor=monitor,
                    engine=SilentEngine(),
                    dry_run=outputs is None or bool(missing),
                )
            )
            # As the engine does: a program with hooks that fails at once would end the process.
            loop.run_until_complete(pulumi.runtime.settings._get_callbacks())
            loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _nothing(program())))
            loop.close()

        contextvars.copy_context().run(isolated)
        return monitor.recording

    return run


def unwrap(value: Any) -> Any:
    """The value with every secret's envelope taken off."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET:
            return unwrap(value["value"])
        return {k: unwrap(v) for k, v in value.items()}
    return [unwrap(v) for v in value] if isinstance(value, list) else value


@pytest.fixture
def is_secret() -> Callable[[Any], bool]:
    """Whether a value of the wire is a secret."""
    return lambda value: isinstance(value, dict) and value.get(SIGNATURE) == SECRET


@pytest.fixture
def unknown() -> str:
    """What stands for an unknown on the wire."""
    return rpc.UNKNOWN


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _nothing(_: object) -> None:
    return None
