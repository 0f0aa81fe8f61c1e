"""Merges a manifest into a stored Service as `kubectl apply` does: what the manifest names is set, what only the last
applied manifest named is removed, and everything else stays. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cloud_controller.kube import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def last_applied(live: Object) -> Object | None:
    """The manifest that kubectl applied last; None if none is recorded, or what is recorded is not one."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        found = json.loads(text) if text else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def merged(last: Object, manifest: Object, live: Object) -> Object:
    """The Service to write, with the manifest as the one that was applied last. `live` itself if nothing differs."""
    metadata = manifest["metadata"]
    # kubectl always writes an annotation, so a manifest without any removes only those that it had before.
    annotations = metadata.get("annotations") or {}
    found = _object(last, {**manifest, "metadata": {**metadata, "annotations": annotations}}, live)
    if found == live:
        return live
    if isinstance(annotations, dict):  # Otherwise the API server says what is wrong.
        found["metadata"]["annotations"][LAST_APPLIED] = json.dumps(manifest, separators=(",", ":"))
    return found


def _object(last: Object, wanted: Object, live: Object) -> Object:
    """A null removes a field."""
    kept = {key: value for key, value in live.items() if key in wanted or key not in last}
    set_here = {
        key: _value(key, last.get(key), value, live.get(key)) for key, value in wanted.items() if value is not None
    }
    return {key: value for key, value in {**kept, **set_here}.items() if wanted.get(key, "") is not None}


def _value(field: str, last: Any, wanted: Any, live: Any) -> Any:
    if isinstance(wanted, dict):
        return _object(_or_empty(last), wanted, _or_empty(live))
    if not isinstance(wanted, list):
        return wanted
    lists = [each if isinstance(each, list) else [] for each in (last, wanted, live)]
    match field:
        case "ports":
            return _by_key(_port_key(lists), *lists)
        case "ownerReferences":
            return _by_key(("uid",), *lists)
        case "finalizers":
            removed = [each for each in lists[0] if each not in wanted]
            return [*wanted, *(each for each in lists[2] if each not in wanted and each not in removed)]
    return wanted


def _by_key(key: tuple[str, ...], last: list[Any], wanted: list[Any], live: list[Any]) -> list[Any]:
    def identity(entry: Any) -> str:
        return repr([_or_default(entry, each) for each in key] if isinstance(entry, dict) else entry)

    before, present = ({identity(each): each for each in entries} for entries in (last, live))
    named = [identity(each) for each in wanted]
    set_here = [
        _object(_or_empty(before.get(own)), each, _or_empty(present.get(own))) if isinstance(each, dict) else each
        for own, each in zip(named, wanted, strict=True)
    ]
    return [*set_here, *(each for own, each in present.items() if own not in before and own not in named)]


def _port_key(lists: Sequence[list[Any]]) -> tuple[str, ...]:
    """kubectl's key is the port number alone. It cannot tell TCP and UDP on one port apart, so there both count."""
    for entries in lists:
        numbers = [repr(each.get("port")) for each in entries if isinstance(each, dict)]
        if len(set(numbers)) < len(numbers):
            return ("port", "protocol")
    return ("port",)


def _or_default(entry: Object, field: str) -> Any:
    return entry.get(field) or ("TCP" if field == "protocol" else None)


def _or_empty(value: Any) -> Object:
    return value if isinstance(value, dict) else {}
