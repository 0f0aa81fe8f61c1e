"""Label selectors, as Kubernetes evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policy.objects import dig, items


def selects(selector: Any, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is selected; an empty selector selects everything.

    An expression without a valid operator selects nothing: the API server rejects it. Raises UnknownValueError.
    """
    wanted = dig(selector, "matchLabels") or {}
    return all(labels.get(name) == wanted[name] for name in wanted) and all(
        _holds(expression, labels) for expression in items(dig(selector, "matchExpressions"))
    )


def _holds(expression: Any, labels: Mapping[str, str]) -> bool:
    value = labels.get(str(dig(expression, "key")))
    match dig(expression, "operator"):
        case "In":
            return value in [*items(dig(expression, "values"))]
        case "NotIn":
            return value not in [*items(dig(expression, "values"))]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
