"""The differences between an object and its inputs, and which of them require a replacement. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from local.aws.provider.kind import Kind
from local.plugins import paths
from local.plugins.differences import differences
from local.plugins.provider import DiffRequest, DiffResult
from local.plugins.urn import name_of
from local.plugins.values import PropertyMap, Value, has_unknowns, without_secrets


def compare(kind: Kind, request: DiffRequest) -> DiffResult:
    """The difference between old and new inputs."""
    olds, plain = without_secrets(request.old_inputs), without_secrets(request.news)
    same = {key for key in olds.keys() & plain.keys() if _means_the_same(kind, key, olds[key], plain[key])}
    ignored = [paths.parse(path) for path in request.ignore_changes]
    detailed = {
        path: difference
        for path, difference in differences(request.old_inputs, request.news).items()
        if _key(path) not in same and not any(paths.holds(each, paths.parse(path)) for each in ignored)
    }
    replaces = kind.replaced_by(olds, plain)
    replacing = tuple(path for path in detailed if _key(path) in replaces)
    detailed |= {path: replace(detailed[path], kind=detailed[path].kind.replacing) for path in replacing}
    # The old object still has the program's name when the new one is made.
    taken = kind.autonamed and not _is_drawn(name_of(request.urn), plain) and plain.get("name") == olds.get("name")
    return DiffResult(bool(detailed), replacing, detailed=detailed, delete_before_replace=kind.delete_first or taken)


def read_inputs(kind: Kind, known: PropertyMap, found: PropertyMap) -> PropertyMap:
    """The inputs as an object has them: the known ones, in their own form where equivalent, and its tags."""
    keys = {*known, *({"tags"} if kind.taggable else ())}
    present = {key: found.get(key, known.get(key) if key in kind.write_only else None) for key in keys}
    read = {key: _as_known(kind, key, known.get(key), value) for key, value in present.items()}
    return {key: value for key, value in read.items() if value is not None}


def said_by_either(old: Value, new: Value) -> Value:
    """The old or new inputs, in the form of the new ones; of objects the fields that either has."""
    if _are_objects(old, new):
        return {**old, **{key: said_by_either(old.get(key), value) for key, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [said_by_either(before, after) for before, after in zip(old, new, strict=True)]
    return new


def imported_inputs(kind: Kind, found: PropertyMap) -> PropertyMap:
    """The inputs that would declare the found object; empty values are omitted."""
    return {key: value for key, value in found.items() if key in kind.inputs and (value or key in kind.defaults)}


def _key(path: str) -> str:
    return str(paths.parse(path)[0])


def _is_drawn(resource: str, inputs: PropertyMap) -> bool:
    """Whether a name consists of the resource's name, or its prefix, and random letters."""
    prefix = str(inputs.get("namePrefix", f"{resource}-"))
    return bool(re.fullmatch(re.escape(prefix) + "[0-9a-f]{7}", str(inputs.get("name"))))


def _means_the_same(kind: Kind, key: str, old: Value, new: Value) -> bool:
    return (key in kind.documents and _same_document(old, new)) or _reordered(old, new)


def _same_document(one: Value, other: Value) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (TypeError, ValueError):
        return bool(one == other)


def _are_objects(*values: Value) -> bool:
    return all(isinstance(value, dict) for value in values)


def _reordered(old: Value, new: Value) -> bool:
    """Whether two lists have the same items: none of the lists here is ordered."""
    if not (isinstance(old, list) and isinstance(new, list)) or has_unknowns(old) or has_unknowns(new):
        return False
    return sorted(map(_text, old)) == sorted(map(_text, new))


def _text(value: Value) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _as_known(kind: Kind, key: str, known: Value, found: Value) -> Value:
    """The found value, in the known value's form if they are equivalent."""
    if _means_the_same(kind, key, known, found) or not (known or found):
        return known
    if _are_objects(known, found) and key != "tags":
        # Only the declared fields of an object are compared: AWS adds the rest.
        return {k: _as_known(kind, "", v, found.get(k, v)) for k, v in known.items()}
    if isinstance(known, list) and isinstance(found, list):
        if len(known) == len(found) and _are_objects(*known, *found):
            return [_as_known(kind, "", k, f) for k, f in zip(known, found, strict=True)]
        return found
    # Some numbers and booleans are strings on one side only.
    retyped = isinstance(known, str) != isinstance(found, str)
    return known if retyped and str(known).lower() == str(found).lower() else found
