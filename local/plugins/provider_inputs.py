"""Parses a provider instance's inputs as the SDK sends them: all except strings are JSON."""

from __future__ import annotations

import json

from local.plugins.provider import ProviderError
from local.plugins.values import UNKNOWN, PropertyMap, Value


def structured(plain: PropertyMap, key: str) -> Value:
    """A list or an object; None if it is not given. Raises ProviderError for a text that is not JSON."""
    given = plain.get(key)
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        raise ProviderError(f"{key} is not JSON") from None


def default_tags_of(plain: PropertyMap) -> dict[str, str]:
    """The tags that the instance gives to every resource, if known. Raises ProviderError."""
    default = structured(plain, "defaultTags")
    tags = default.get("tags") if isinstance(default, dict) else None
    return {str(k): str(v) for k, v in tags.items() if v is not UNKNOWN} if isinstance(tags, dict) else {}
