"""Finds a resource's secrets elsewhere: in errors, and in outputs with another name than the input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from local.plugins.provider import ProviderError
from local.plugins.values import PropertyMap, Secret, Value, without_secrets
from local.plugins.wire import mask

_SHORTEST: Final = 3
"""Characters; shorter texts occur in too many unrelated places."""
_SHORTEST_WITHIN: Final = 6
"""Characters of a text that is a secret within others, too: most outputs and many words contain some shorter one."""


def masked(message: str, inputs: Value) -> str:
    """The message without the inputs' secret texts: an API may quote what it rejects."""
    texts = set(_texts(inputs))
    # As JSON, most languages and Python write what has several lines.
    texts |= {form for text in texts for form in (json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])}
    for text in sorted(texts, key=len, reverse=True):
        found = re.escape(text)
        if len(text) < _SHORTEST_WITHIN:
            found = rf"(?:\b|(?!\w)){found}(?:\b|(?<!\w))"
        message = re.sub(found, "[secret]", message)
    return message


@contextmanager
def masking(*inputs: PropertyMap) -> Iterator[None]:
    """Mask the inputs' secrets in the errors that a provider raises."""
    try:
        yield
    except ProviderError as error:
        error.args = (masked(str(error), [*inputs]),)
        raise


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
    elif secret and type(value) in (str, int, float) and len(str(value)) >= _SHORTEST:
        # A bool is an int, but tells nothing.
        yield str(value)
