"""Decides the step of a resource: same, create, update, replace or delete. Pure: values in, decisions out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from local.engine.stack.resource import ResourceState
from local.plugins import paths
from local.plugins.differences import differences, limited_to
from local.plugins.provider import DiffRequest, DiffResult, PropertyDiff
from local.plugins.urn import is_provider, name_of, type_of
from local.plugins.values import Value, without_secrets

_INIT_ERROR: Final = "#initerror"
"""The path for a failed readiness in `replaceOnChanges`; `*` includes it."""
_NAMED: Final = 5
"""How many protected resources a message names: a protected stack has dozens."""


UNPROTECT: Final = (
    "declare it in the program without `protect` (in a stack file of this project `protect: false`), run `up`, then "
    "retry"
)
"""How to make a protected resource replaceable or deletable."""


class Op(StrEnum):
    """A step's operation, in Pulumi's words."""

    SAME = "same"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"
    CREATE_REPLACEMENT = "create-replacement"
    DELETE_REPLACED = "delete-replaced"
    REFRESH = "refresh"
    READ = "read"
    READ_REPLACEMENT = "read-replacement"
    DISCARD = "discard"
    DISCARD_REPLACED = "discard-replaced"
    IMPORT = "import"
    IMPORT_REPLACEMENT = "import-replacement"


@dataclass(frozen=True, slots=True)
class Decision:
    """A resource's step and its reason. `detailed` is keyed by property path."""

    op: Op
    detailed: dict[str, PropertyDiff] = field(default_factory=dict)
    replace_keys: tuple[str, ...] = ()
    delete_first: bool = False
    """Delete the old one before the new one is made."""

    @property
    def keys(self) -> list[str]:
        """The top-level properties that differ, sorted."""
        return sorted({str(steps[0]) for path in self.detailed if (steps := paths.parse(path))})


class ProtectedError(Exception):
    """A protected resource would have to be deleted or replaced."""


def diff_request(old: ResourceState, new: ResourceState) -> DiffRequest:
    """The request to a provider to compare an existing resource with its new inputs."""
    return DiffRequest(
        urn=new.urn,
        id=str(old.id),
        old_inputs=old.inputs,
        old_outputs=old.outputs,
        news=new.inputs,
        ignore_changes=new.ignore_changes,
    )


def decide(old: ResourceState, new: ResourceState, diff: DiffResult, forced: Sequence[str] = ()) -> Decision:
    """The step of an existing resource. Raises ProtectedError if that would delete a protected one.

    `forced` has reasons for a replacement other than its properties.
    """
    detailed = dict(diff.detailed)
    if not detailed and diff.changed is not False:
        detailed = differences(old.inputs, new.inputs)
        if diff.diffs:
            detailed = limited_to(detailed, diff.diffs)
    changed = bool(detailed) if diff.changed is None else diff.changed
    replace_keys = [*diff.replaces, *(p for p, d in detailed.items() if d.kind.endswith("-replace"))]
    # Without the changed paths from the provider, `replaceOnChanges` has nothing to match.
    matched = diff.detailed if diff.changed is not None else detailed
    wished = _forced(matched if changed else {}, new.replace_on_changes, broken=bool(old.init_errors))
    detailed |= {p: replace(detailed[p], kind=detailed[p].kind.replacing) for p in wished if p in detailed}
    replace_keys += wished
    elsewhere = bool(old.provider and new.provider) and provider_changed(old.provider, new.provider)
    if elsewhere:
        replace_keys.append("provider")
    asked = ["replacementTrigger"] if triggered(old.replacement_trigger, new.replacement_trigger) else []
    if old.taint:
        asked.append("taint")
    asked += forced
    replace_keys += asked
    if replace_keys:
        # A resource that loses its protection may be replaced in the same run.
        if old.protect and new.protect:
            because = ", ".join(dict.fromkeys(replace_keys))
            raise ProtectedError(
                f"{named(old)} must be replaced (because of {because}) but is protected; undo that change, or "
                f"{UNPROTECT}"
            )
        first = new.delete_before_replace
        if first is None:
            # The providers recognise a repeated create by its inputs and return the old object for the same ones. In
            # another place, such as another cluster, no name is in use yet.
            first = not elsewhere and (diff.delete_before_replace or (bool(asked) and not changed))
        return Decision(Op.REPLACE, detailed, tuple(dict.fromkeys(replace_keys)), first)
    if changed or old.init_errors:
        return Decision(Op.UPDATE, detailed)
    return Decision(Op.SAME)


def _forced(detailed: Mapping[str, PropertyDiff], patterns: Sequence[str], *, broken: bool) -> list[str]:
    parsed = [paths.parse(p) for p in patterns]
    candidates = [*detailed, *([_INIT_ERROR] if broken else ())]
    return [p for p in candidates if any(paths.holds(w, paths.parse(p)) for w in parsed)]


def triggered(old: Value, new: Value) -> bool:
    """Whether a changed replacement trigger requires a replacement: not if it was or is absent.

    An unknown value counts as changed; a change of secrecy does not count.
    """
    old, new = without_secrets(old), without_secrets(new)
    return old is not None and new is not None and (old != new or isinstance(old, bool) != isinstance(new, bool))


def provider_changed(old: str, new: str) -> bool:
    """Whether another provider instance, as `URN::ID`, manages other objects than the old one."""
    old_urn, new_urn = old.rpartition("::")[0], new.rpartition("::")[0]
    if old_urn == new_urn:
        # Another id under the same name: the provider was itself replaced, by one of another cluster.
        return old != new
    # A default provider's name contains the SDK's version: an upgrade must not replace what it manages.
    return not (_is_default(old_urn) and _is_default(new_urn))


def _is_default(urn: str) -> bool:
    name = name_of(urn)
    return name == "default" or name.startswith("default_")


def check_protection(candidates: Iterable[ResourceState]) -> None:
    """Raise ProtectedError, naming the first ones, if a protected resource is among those to delete."""
    protected = [named(r) for r in candidates if r.protect]
    if protected:
        others = [f"{len(protected) - _NAMED} more"] if len(protected) > _NAMED else []
        lines = [f"  {each}" for each in (*protected[:_NAMED], *others)]
        raise ProtectedError("\n".join(["protected resources would be deleted:", *lines, UNPROTECT]))


def named(resource: ResourceState) -> str:
    """The resource's name for people."""
    return f"{type_of(resource.urn)} {name_of(resource.urn)}"


def goes_with(resource: ResourceState, deleted: Iterable[ResourceState]) -> bool:
    """Whether the resource needs no deletion of its own, because what it is `deletedWith` is deleted too."""
    return bool(resource.deleted_with) and any(d.urn == resource.deleted_with for d in deleted)


def dependents(urn: str, resources: Sequence[ResourceState]) -> list[ResourceState]:
    """All resources that depend on `urn`, directly or not, each after its dependencies; children do not count."""
    found: set[str] = {urn}
    result: list[ResourceState] = []
    for resource in resources:
        # A dependency on its parent beyond being its child does count.
        if not resource.delete and resource.urn != urn and replace(resource, parent="").requires() & found:
            found.add(resource.urn)
            result.append(resource)
    return result


def is_hidden(resource: ResourceState) -> bool:
    """Whether it is hidden from people: the default providers, which no program declares."""
    return is_provider(resource.type) and not resource.parent and _is_default(resource.urn)


def default_provider_name(package: str, version: str) -> str:
    """The name of the default provider instance, for resources that name none."""
    # The dynamic provider's version is the SDK's own and is not part of its name.
    return f"default_{version.replace('.', '_')}" if version and package != "pulumi-python" else "default"
