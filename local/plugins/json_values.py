"""Property values as JSON: the marked maps of the wire, and a form of secrets that the caller chooses. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.plugins.values import UNKNOWN, Archive, Asset, ResourceReference, Secret, Value
from local.plugins.wire import ARCHIVE, ASSET, RESOURCE, SIGNATURE, UNKNOWN_TEXT

Json = Any


def mask(value: Value) -> Json:
    """A value as JSON for people and events: [secret] for secrets, the wire's sentinel for unknowns."""
    return as_json(value, lambda _: "[secret]")


def as_json(value: Value, on_secret: Callable[[Secret], Json]) -> Json:
    """A value as JSON; `on_secret` decides the form of secrets."""
    if isinstance(value, dict):
        return {k: as_json(v, on_secret) for k, v in value.items()}
    if isinstance(value, list):
        return [as_json(v, on_secret) for v in value]
    if isinstance(value, Secret):
        return on_secret(value)
    if value is UNKNOWN:
        return UNKNOWN_TEXT
    if isinstance(value, ResourceReference):
        marked: Json = {SIGNATURE: RESOURCE, "urn": value.urn}
        if value.id is not None:
            marked["id"] = as_json(value.id, on_secret)
        return marked | ({"packageVersion": value.package_version} if value.package_version else {})
    if isinstance(value, Asset | Archive):
        signature = ASSET if isinstance(value, Asset) else ARCHIVE
        return {SIGNATURE: signature} | {k: as_json(v, on_secret) for k, v in value.properties}
    return value
