"""The differences between two property maps, path by path. Pure."""

from __future__ import annotations

from local.plugins import paths
from local.plugins.provider import DiffKind, PropertyDiff
from local.plugins.values import Secret, Value


def differences(old: Value, new: Value) -> dict[str, PropertyDiff]:
    """The differences between two property maps, by path; secrets are compared by content, internal keys omitted."""
    found: dict[str, PropertyDiff] = {}
    _compare(_public(old), _public(new), (), found)
    return found


def _public(values: Value) -> Value:
    return {k: v for k, v in values.items() if not k.startswith("__internal")}


def _compare(old: Value, new: Value, path: paths.Path, found: dict[str, PropertyDiff]) -> None:
    # A secret differs as a whole: the differing part would reveal something about its content.
    if isinstance(old, Secret) or isinstance(new, Secret):
        plain_old = old.value if isinstance(old, Secret) else old
        plain_new = new.value if isinstance(new, Secret) else new
        if plain_old != plain_new:
            found[paths.write(path)] = PropertyDiff(DiffKind.UPDATE)
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            if key not in new:
                found[paths.write((*path, key))] = PropertyDiff(DiffKind.DELETE)
            elif key not in old:
                found[paths.write((*path, key))] = PropertyDiff(DiffKind.ADD)
            else:
                _compare(old[key], new[key], (*path, key), found)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            if index >= len(new):
                found[paths.write((*path, index))] = PropertyDiff(DiffKind.DELETE)
            elif index >= len(old):
                found[paths.write((*path, index))] = PropertyDiff(DiffKind.ADD)
            else:
                _compare(old[index], new[index], (*path, index), found)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        found[paths.write(path)] = PropertyDiff(DiffKind.UPDATE)
