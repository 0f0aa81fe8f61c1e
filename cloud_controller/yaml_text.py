"""Parses user-written YAML. Errors name the line but never quote the text, which may contain a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml

# Besides its own errors, PyYAML leaks conversion errors: `2024-99-99`, `!!bool x`, `[[[[…`.
_ERRORS = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)

_REASONS: Final[Mapping[str, str]] = {
    "mapping values are not allowed here": "a value that contains `: ` needs quotes, or the indentation is wrong",
    "could not find expected ':'": "a key without a colon, or an unclosed quote",
    "found character '\\t' that cannot start any token": "indent with spaces, not tabs",
    "found character": "a value that starts with % @ or ` needs quotes",
    "expected <block end>": "the indentation does not match the lines above",
    "expected ',' or": "an unclosed bracket, or a missing comma",
    "found unexpected end of stream": "an unclosed quote",
    "found undefined alias": "a value that starts with * needs quotes",
    "found unknown escape character": "an unknown escape in double quotes; use single quotes for literal backslashes",
}
"""Advice by prefix of PyYAML's own message, which may quote the text."""


class NotYaml(ValueError):
    """The text is not valid YAML; the message names the line."""


def load(text: str) -> Any:
    """Parse the text. Raises NotYaml, also for duplicate keys, of which PyYAML silently takes the last."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        if tree is not None:
            _refuse_duplicates(tree, set())
        return yaml.safe_load(text)
    except NotYaml:
        raise
    except _ERRORS as error:
        raise NotYaml(describe(error)) from None


def describe(error: Exception) -> str:
    """A parser error's message without quoted text."""
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
                raise NotYaml(f"not valid YAML (line {line}): duplicate key, also in line {lines[key.value]}")
            lines[str(key.value)] = line
            _refuse_duplicates(value, seen)


def lines(text: str) -> dict[str, int]:
    """The line of every key and element by path (`a`, `a.b`, `a.b[0].c`); empty if the text is not valid YAML."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except _ERRORS:
        return {}
    found: dict[str, int] = {}
    _note_lines(tree, "", found, set())
    return found


def _note_lines(node: yaml.Node | None, path: str, found: dict[str, int], seen: set[int]) -> None:
    # Aliases keep the line of their anchor: following them could recurse without end.
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
