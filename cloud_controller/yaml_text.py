"""Parses user-written YAML. Errors name the line but never quote the text, which may contain a secret."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
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


_MOST_VALUES = 1_000_000
"""Values of a document, where aliases count as often as they are used: a few lines of them can stand for billions."""


class NotYaml(ValueError):
    """The text is not valid YAML; the message names the line."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a stream. `line`: where it begins; `lines`: see the function `lines`."""

    value: Any
    line: int
    lines: Mapping[str, int]


def load(text: str) -> Any:
    """Parse the text. Raises NotYaml, also for duplicate keys, of which PyYAML silently takes the last."""
    try:
        loader = yaml.SafeLoader(text)
        tree = loader.get_single_node()
        if tree is None:
            return None
        _refuse_duplicates(tree, set())
        return loader.construct_document(tree)
    except NotYaml:
        raise
    except _ERRORS as error:
        raise NotYaml(describe(error)) from None


def documents(text: str) -> list[Document]:
    """The documents of a stream that are not empty, with the JSON values that Kubernetes' tools read in them.

    JSON objects may also follow one another without a separator. Raises NotYaml like `load`.
    """
    # Joined files have one in the middle, too.
    text = _BYTE_ORDER_MARK.sub("", text)
    return [each for before, part, value in _parts(text) for each in _of_part(before, part, value)]


def describe(error: Exception, before: int = 0) -> str:
    """A parser error's message without quoted text. `before`: the lines before the text that was parsed."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or "")
    reason = next((words for begins, words in _REASONS.items() if problem.startswith(begins)), "")
    where = f" (line {before + mark.line + 1})" if mark else ""
    return f"not valid YAML{where}{': ' if reason else ''}{reason}"


class _Loader(yaml.SafeLoader):
    """Reads plain words as Kubernetes' tools do: without dates, and without numbers to the base of 60 (`12:30`), but
    with `y` and `n`, `1e3`, `0o17` and `08`."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        # Mappings that are merged (`<<`) again and again would multiply: the last of each key is the one that counts.
        last = {each[0].value if isinstance(each[0], yaml.ScalarNode) else id(each[0]): each for each in node.value}
        node.value = [*last.values()]


_BYTE_ORDER_MARK = re.compile("^\ufeff", re.MULTILINE)
_ENCODABLE = re.compile(r"[^\ud800-\udfff]*")
_LIKE_A_DATE_OR_TIME = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in ("timestamp", "value")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _first in "-+0123456789":
    _texts = ("tag:yaml.org,2002:str", _LIKE_A_DATE_OR_TIME)
    _Loader.yaml_implicit_resolvers[_first] = [_texts, *_Loader.yaml_implicit_resolvers.get(_first, [])]
# Of three digits, most exponents are too large for a number, and so the word is a text.
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?$"
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("[yYnN]$"), [*"yYnN"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile("[-+]?0o[0-7]+$"), [*"-+0"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(_FLOAT), [*"-+.0123456789"])


def _parts(text: str) -> Iterator[tuple[int, str, Any]]:
    """YAML as it is; JSON object by object, with the lines before each, and its value."""
    position = len(text) - len(text.lstrip())
    while text[position : position + 1] == "{":
        try:
            value, end = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            break  # YAML has objects in braces too.
        # YAML does not allow the tabs that may indent JSON.
        yield text.count("\n", 0, position), text[position:end].replace("\t", " "), value
        position = end + len(text[end:]) - len(text[end:].lstrip())
    if position < len(text):
        before = text.count("\n", 0, position) if position and text[:position].strip() else 0
        yield before, text[position:] if before else text, None


def _of_part(before: int, text: str, value: Any) -> Iterator[Document]:
    try:
        loader = _Loader(text)
        while loader.check_node() and (node := loader.get_node()) is not None:
            _refuse_duplicates(node, set(), before)
            given = loader.construct_document(node) if value is None else value
            found: dict[str, int] = {}
            _note_lines(node, "", found, set(), before)
            if given is not None:
                yield Document(_as_json(given, count()), before + node.start_mark.line + 1, found)
    except NotYaml:
        raise
    except _ERRORS as error:
        raise NotYaml(describe(error, before)) from None


def _as_json(value: Any, number: Iterator[int]) -> Any:
    """The value, with keys as JSON has them. Raises NotYaml for what JSON does not have."""
    if next(number) > _MOST_VALUES:
        raise NotYaml(f"not valid YAML: more than {_MOST_VALUES:,} values")
    if isinstance(value, dict):
        return {
            _encodable(key if isinstance(key, str) else json.dumps(key)): _as_json(each, number)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_as_json(each, number) for each in value]
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise NotYaml(f"not valid YAML: a value of type {type(value).__name__}, which JSON does not have")


def _encodable(text: str) -> str:
    if not _ENCODABLE.fullmatch(text):
        raise NotYaml("not valid YAML: half of a surrogate pair, which is not a character")
    return text


def _refuse_duplicates(node: yaml.Node, seen: set[int], before: int = 0) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _refuse_duplicates(each, seen, before)
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = before + key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value in lines and key.value != "<<":
                raise NotYaml(f"not valid YAML (line {line}): duplicate key, also in line {lines[key.value]}")
            lines[str(key.value)] = line
            _refuse_duplicates(value, seen, before)


def lines(text: str) -> dict[str, int]:
    """The line of every key and element by path (`a`, `a.b`, `a.b[0].c`); empty if the text is not valid YAML."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
    except _ERRORS:
        return {}
    found: dict[str, int] = {}
    _note_lines(tree, "", found, set())
    return found


def _note_lines(node: yaml.Node | None, path: str, found: dict[str, int], seen: set[int], before: int = 0) -> None:
    # Aliases keep the line of their anchor: following them could recurse without end.
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            found[f"{path}[{index}]"] = before + each.start_mark.line + 1
            _note_lines(each, f"{path}[{index}]", found, seen, before)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = f"{path}.{key.value}" if path else str(key.value)
            found[name] = before + key.start_mark.line + 1
            _note_lines(value, name, found, seen, before)
