"""Server-side apply with clear errors: which object, which field is invalid, who owns it."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Sequence
from typing import Any

from cloud_controller.kube import ConflictError, Kube, Object, PatchType, Resource
from local.plugins import paths
from local.plugins.kubernetes.check import PATCH_FORCE
from local.plugins.kubernetes.errors import explain
from local.plugins.kubernetes.settings import PATCH_FORCE_VARIABLE
from local.plugins.provider import ProviderError

_MANAGER = re.compile(r'conflict with "([^"]+)"')
_CLIENT_SIDE_MANAGER = "pulumi-kubernetes"
"""The manager of what Pulumi's own provider creates: its fields belong to this program."""
_MISSING = object()


class FieldConflict(ProviderError):
    """Other managers own fields of the object."""


def field_manager_of(urn: str) -> str:
    """The field manager of a resource.

    It is derived from the URN, so that a run that lost its state in a crash recognises its own objects.
    """
    return f"pulumi-kubernetes-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"


def apply(
    kube: Kube, resource: Resource, obj: dict[str, Any], manager: str, *, force: bool, dry_run: bool = False
) -> Object:
    """The object as stored. Raises ProviderError; ApiErrors about the server pass through."""
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace")

    def patch(*, force: bool) -> Object:
        return kube.patch(
            resource,
            name,
            obj,
            namespace,
            type=PatchType.APPLY,
            field_manager=manager,
            force=force,
            dry_run=dry_run,
        )

    try:
        return patch(force=force)
    except ConflictError as error:
        conflicts = _conflicts(error)
        if conflicts and all(owner == _CLIENT_SIDE_MANAGER for _, owner in conflicts):
            return patch(force=True)
        raise FieldConflict(_conflict_message(resource, obj, conflicts, error)) from None


def describe(resource: Resource, obj: dict[str, Any]) -> str:
    """The object for people: `Service kube-system/web`."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{resource.kind} {namespace}/{metadata['name']}" if namespace else f"{resource.kind} {metadata['name']}"


def with_live_values(obj: dict[str, Any], live: Object, ignored: Sequence[str]) -> dict[str, Any]:
    """The object with the live values at the ignored paths.

    Applying the live value leaves the field as it is, whoever owns it; omitting the field would remove it if it has no
    other owner.
    """
    result = copy.deepcopy(obj)
    for text in ignored:
        path = paths.parse(text)
        if "*" not in path and path:
            _copy(result, live, path)
    return result


def _copy(target: Any, source: Any, path: paths.Path) -> None:
    for step in path[:-1]:
        source = _get(source, step)
        inner = _get(target, step)
        if inner is _MISSING:
            return
        target = inner
    value = _get(source, path[-1])
    if isinstance(target, dict):
        if value is _MISSING:
            target.pop(path[-1], None)
        else:
            target[path[-1]] = copy.deepcopy(value)
    elif isinstance(target, list) and isinstance(path[-1], int) and path[-1] < len(target) and value is not _MISSING:
        target[path[-1]] = copy.deepcopy(value)


def _get(value: Any, step: paths.Step) -> Any:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return _MISSING


def _conflicts(error: ConflictError) -> list[tuple[str, str]]:
    """(field, owner) of each conflict."""
    found = []
    for cause in error.details.get("causes") or []:
        if cause.get("reason") == "FieldManagerConflict":
            owner = _MANAGER.search(str(cause.get("message", "")))
            found.append((str(cause.get("field", "")).removeprefix("."), owner[1] if owner else "another manager"))
    return found


def _conflict_message(
    resource: Resource, obj: dict[str, Any], conflicts: list[tuple[str, str]], error: ConflictError
) -> str:
    subject = describe(resource, obj)
    if not conflicts:
        return explain(subject, error)
    owned = ", ".join(f'{field} is managed by "{owner}"' for field, owner in conflicts)
    fields = ", ".join(f'"{field}"' for field, _ in conflicts)
    return (
        f"{subject}: {owned}\n"
        f"to leave it to them: the resource option ignore_changes=[{fields}]\n"
        f'to take it over: the annotation {PATCH_FORCE}: "true" on the object, or once for all that this run updates: '
        f"{PATCH_FORCE_VARIABLE}=true in the environment"
    )
