"""Finds a resource's secrets elsewhere: in errors, and in outputs with another name than the input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from local.engine.stack.resource import mask
from local.engine.values import PropertyMap, Secret, Value, without_secrets

_SHORTEST: Final = 3
"""Characters; shorter texts occur in too many unrelated places."""
_SHORTEST_WITHIN: Final = 6
"""Characters that make another output a secret: most outputs contain some three digits."""


def masked(message: str, inputs: Value) -> str:
    """The message without the inputs' secret texts: an API may quote what it rejects."""
    for text in sorted(_texts(inputs), key=len, reverse=True):
        message = message.replace(text, "[secret]")
    return message


def hidden(outputs: PropertyMap, inputs: PropertyMap) -> PropertyMap:
    """The outputs, with those secret that contain an input's secret text, such as a name within an ARN."""
    written = [json.dumps(text)[1:-1] for text in _texts(inputs) if len(text) >= _SHORTEST_WITHIN]

    def hides(value: Value) -> bool:
        shown = json.dumps(mask(value)) if written else ""
        return any(text in shown for text in written)

    return {key: Secret(without_secrets(value)) if hides(value) else value for key, value in outputs.items()}


def _texts(value: Value, *, secret: bool = False) -> Iterator[str]:
    if isinstance(value, Secret):
        yield from _texts(value.value, secret=True)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item, secret=secret)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, secret=secret)
    elif secret and isinstance(value, str | int | float) and len(str(value)) >= _SHORTEST:
        yield str(value)
