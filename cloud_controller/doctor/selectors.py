"""Which objects a label selector selects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is selected; an empty selector selects every object (meta/v1)."""
    return (selector.get("matchLabels") or {}).items() <= labels.items() and all(
        _holds(each, labels) for each in selector.get("matchExpressions") or ()
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None
