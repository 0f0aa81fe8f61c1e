"""Reads YAML that people wrote. Errors name the line and quote nothing, because what stands there may be a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

# Besides its own errors, the parser lets errors of conversions through: `2024-99-99`, `!!bool x`, `[[[[…`.
_ERRORS = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)

_REASONS: Final[Mapping[str, str]] = {
    "mapping values are not allowed here": "a value with `: ` in it needs quotes, or the indentation is wrong",
    "could not find expected ':'": "a key without a colon after it, or a quote that is not closed",
    "found character '\\t' that cannot start any token": "a tab: indent with spaces",
    "found character": "a value that begins with % @ or ` needs quotes",
    "expected <block end>": "the indentation does not fit the lines above",
    "expected ',' or": "a bracket is not closed, or a comma is missing",
    "found unexpected end of stream": "a quote is not closed",
    "found undefined alias": "a value that begins with * needs quotes",
    "found unknown escape character": "an unknown escape in double quotes; in single quotes a backslash is itself",
}
"""What people can do, by the beginning of the parser's own words, which quote the text."""


class NotYaml(ValueError):
    """The text is not valid YAML; the message says where."""


def load(text: str) -> Any:
    """What the text holds. Raises NotYaml, also for a key that appears twice, of which YAML takes the last."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        if tree is not None:
            _refuse_duplicates(tree, set())
        return yaml.safe_load(text)
    except NotYaml:
        raise
    except _ERRORS as error:
        raise NotYaml(told(error)) from None


def told(error: Exception) -> str:
    """An error of the parser without what it quotes."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "")
    reason = next((words for begins, words in _REASONS.items() if problem.startswith(begins)), "")
    where = f" (line {mark.line + 1})" if mark else ""
    return f"not valid YAML{where}{': ' if reason else ''}{reason}"


def _refuse_duplicates(node: yaml.Node, seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _refuse_duplicates(each, seen)
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value in lines and key.value != "<<":
                raise NotYaml(f"not valid YAML (line {line}): the same key as in line {lines[key.value]}")
            lines[str(key.value)] = line
            _refuse_duplicates(value, seen)


def lines(text: str) -> dict[str, int]:
    """The line of every key and element, by its path: `a`, `a.b`, `a.b[0].c`; nothing where it is not valid YAML."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except _ERRORS:
        return {}
    found: dict[str, int] = {}
    _note_lines(tree, "", found, set())
    return found


def _note_lines(node: yaml.Node | None, path: str, found: dict[str, int], seen: set[int]) -> None:
    # What an alias repeats has the line of its anchor alone: aliases of aliases would be without end.
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            found[f"{path}[{index}]"] = each.start_mark.line + 1
            _note_lines(each, f"{path}[{index}]", found, seen)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            found[name] = key.start_mark.line + 1
            _note_lines(value, name, found, seen)
