"""The desired state of a resource, read from the request that registers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from google.protobuf.struct_pb2 import Struct

from local.engine.program.hooks import binding_of
from local.engine.stack.resource import ResourceState, Timeouts
from local.plugins import urn as urns
from local.plugins.values import UNKNOWN, PropertyMap, Value
from local.plugins.wire import UNKNOWN_TEXT, from_struct


@dataclass(frozen=True, slots=True)
class Alias:
    """A former name of a resource: its whole URN, or the parts that differed; "" means unchanged."""

    urn: str = ""
    name: str = ""
    type: str = ""
    parent: str = ""
    no_parent: bool = False
    project: str = ""
    stack: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """The desired state of a resource. None means that the program did not set the option."""

    type: str
    name: str
    custom: bool
    parent: str
    inputs: PropertyMap
    provider: str = ""
    providers: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    protect: bool | None = None
    retain_on_delete: bool | None = None
    aliases: tuple[Alias, ...] = ()
    import_id: str = ""
    """The id of the existing object to import instead of creating one."""
    template: ResourceState | None = None
    """The remaining options, in the state's own form."""


def goal_of(request: Any, root: str) -> Goal:
    """The goal in a RegisterResourceRequest; `root` is the project's folder. Raises ValueError, WireError."""
    timeouts = request.customTimeouts
    template = ResourceState(
        urn="",
        type=request.type,
        custom=request.custom,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={k: tuple(sorted(v.urns)) for k, v in request.propertyDependencies.items()},
        deleted_with=request.deletedWith,
        replace_with=tuple(request.replace_with),
        replacement_trigger=_trigger(request),
        hide_diffs=tuple(request.hideDiffs),
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        timeouts=Timeouts(
            seconds_of(timeouts.create),
            seconds_of(timeouts.update),
            seconds_of(timeouts.delete),
            seconds_of(timeouts.read),
        ),
        resource_hooks=binding_of(request.hooks),
        source_position=_position(request.sourcePosition, root),
        stack_trace=_stack_trace(request.stackTrace.frames, root),
    )
    return Goal(
        type=request.type,
        name=request.name,
        custom=request.custom,
        parent=request.parent,
        inputs=from_struct(request.object),
        provider=request.provider,
        providers=dict(request.providers),
        version=request.version,
        protect=request.protect if request.HasField("protect") else None,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
        aliases=_aliases(request),
        import_id=request.importId,
        template=template,
    )


def read_goal_of(request: Any, root: str) -> tuple[Goal, Value]:
    """The goal in a ReadResourceRequest, and the id of the object, which may be UNKNOWN. Raises WireError."""
    template = ResourceState(
        urn="",
        type=request.type,
        custom=True,
        external=True,
        dependencies=tuple(sorted(request.dependencies)),
        additional_secret_outputs=tuple(request.additionalSecretOutputs),
        source_position=_position(request.sourcePosition, root),
        stack_trace=_stack_trace(request.stackTrace.frames, root),
    )
    goal = Goal(
        type=request.type,
        name=request.name,
        custom=True,
        parent=request.parent,
        inputs=from_struct(request.properties),
        provider=request.provider,
        version=request.version,
        protect=False,
        retain_on_delete=False,
        template=template,
    )
    return goal, UNKNOWN if request.id == UNKNOWN_TEXT else request.id


def _aliases(request: Any) -> tuple[Alias, ...]:
    found = [Alias(urn=urn) for urn in request.aliasURNs]
    for alias in request.aliases:
        spec = alias.spec
        found.append(Alias(alias.urn, spec.name, spec.type, spec.parentUrn, spec.noParent, spec.project, spec.stack))
    for alias in found:
        if alias.urn:
            urns.check(alias.urn)
    return tuple(found)


def _trigger(request: Any) -> Value:
    if not request.HasField("replacement_trigger"):
        return None
    return from_struct(Struct(fields={"trigger": request.replacement_trigger})).get("trigger")


_ENGINE: Final = str(Path(__file__).parents[1])
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds_of(text: str) -> float:
    """Go's duration form (`1h30m`, `5m`, `90s`) in seconds; "" is 0. Raises ValueError."""
    total, number, rest = 0.0, "", text
    while rest:
        if rest[0].isdigit() or rest[0] == ".":
            number, rest = number + rest[0], rest[1:]
            continue
        unit = rest[:2] if rest[:2] == "ms" else rest[:1]
        if unit not in _UNITS or not number:
            raise ValueError(f"{text!r} is not a valid duration (for example 5m, 90s, 1h30m)")
        total, number, rest = total + float(number) * _UNITS[unit], "", rest[len(unit) :]
    if number:
        raise ValueError(f"{text!r} is not a valid duration: the unit is missing (for example 5m, 90s, 1h30m)")
    return total


def _position(position: Any, root: str) -> str:
    return _relative_position(position.uri, position.line, root)


def _stack_trace(frames: Any, root: str) -> tuple[str, ...]:
    """The frames in the project's own files; those of the engine and of libraries are omitted."""
    positions = (_position(frame.pc, root) for frame in frames)
    engine = f"project:///{_ENGINE.removeprefix(root.rstrip('/') + '/')}/"
    return tuple(p for p in positions if p and "/site-packages/" not in p and not p.startswith(engine))


@lru_cache(maxsize=1024)
def _relative_position(uri: str, line: int, root: str) -> str:
    # Each resource comes with its whole stack trace, and these are much alike.
    uri = unquote(uri)
    if not uri.startswith("file://"):
        return ""
    path = uri.removeprefix("file://")
    relative = path.removeprefix(root.rstrip("/") + "/")
    # A path outside the project does not belong in a shared state.
    return f"project:///{relative}#{line}" if relative != path else ""
