"""Reads YAML that people wrote. Errors name only the line, because what the parser quotes may hold a secret."""

from __future__ import annotations

from typing import Any

import yaml

# Besides its own errors, the parser lets errors of conversions through: `2024-99-99`, `!!bool x`, `[[[[…`.
_ERRORS = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)


class NotYaml(ValueError):
    """The text is not valid YAML; the message says where."""


def load(text: str) -> Any:
    """What the text holds. Raises NotYaml."""
    try:
        return yaml.safe_load(text)
    except _ERRORS as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        raise NotYaml("not valid YAML" + (f" (line {mark.line + 1})" if mark else "")) from None
