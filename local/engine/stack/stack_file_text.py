"""Edits the text of a stack file; other keys and the comments stay as they are. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, Final

import yaml

from cloud_controller import yaml_text

_UNICODE_BREAKS: Final = ("\x85", "\u2028", "\u2029")


def with_config(text: str, key: str, value: Any) -> str:
    """The text with this value in its `config`. Raises NotYaml."""
    document = _document(text)
    old = document["config"]
    return _checked(_put(text, old, key, value), {**document, "config": {**old, key: value}})


def without_config(text: str, key: str) -> str:
    """The text without this key of its `config`, which has it. Raises NotYaml."""
    document = _document(text)
    left = {k: v for k, v in document["config"].items() if k != key}
    return _checked(_take(text, key), {**document, "config": left})


def with_salt(text: str, salt: str) -> str:
    """The text with an `encryptionsalt`, where it has none. Raises NotYaml."""
    root = yaml.compose(text)
    place = len(text) if root is None else root.start_mark.index
    changed = f"{text[:place]}{_newline(text[:place])}encryptionsalt: {salt}\n{text[place:]}"
    return _checked(changed, {"encryptionsalt": salt, **_document(text)})


def _document(text: str) -> dict[str, Any]:
    """The content of the text, always with a map `config`."""
    data = yaml_text.load(text) or {}
    return {**data, "config": data.get("config") or {}}


def _checked(changed: str, wanted: Mapping[str, Any]) -> str:
    """The changed text if it has the expected content; else the rewritten content, without comments."""
    try:
        if _document(changed) == wanted:
            return changed
    except yaml_text.NotYaml:
        pass  # the text has a form, such as an anchor, that cannot be changed in part
    return _dumped(wanted)


def _put(text: str, old: Mapping[str, Any], key: str, value: Any) -> str:
    found = _pair(yaml.compose(text), "config")
    if found is None:
        return f"{text}{_newline(text)}config:\n{_block({key: value}, 2)}\n"
    name, config = found
    if not isinstance(config, yaml.MappingNode) or config.flow_style:
        block = _block({**old, key: value}, name.start_mark.column + 2)
        return f"{text[: name.start_mark.index]}config:\n{block}{text[_end(text, config) :]}"
    if pair := _pair(config, key):
        start, column = pair[0].start_mark.index, pair[0].start_mark.column
        return text[:start] + _block({key: value}, column).lstrip() + text[_end(text, pair[1]) :]
    last = _end(text, config)
    place = text.find("\n", last) if "\n" in text[last:] else len(text)
    return f"{text[:place]}\n{_block({key: value}, config.start_mark.column)}{text[place:]}"


def _take(text: str, key: str) -> str:
    found = _pair(yaml.compose(text), "config")
    pair = _pair(found[1], key) if found else None
    if pair is None:
        return text
    start = text.rfind("\n", 0, pair[0].start_mark.index) + 1
    end = text.find("\n", _end(text, pair[1]))
    return text[:start] + (text[end + 1 :] if end >= 0 else "")


def _pair(node: yaml.Node | None, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((pair for pair in pairs if pair[0].value == key), None)


def _end(text: str, node: yaml.Node) -> int:
    """Where a node ends; the parser's own end mark of a block is after the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    return len(text[:end].rstrip()) if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">") else end


def _block(values: Mapping[str, Any], column: int) -> str:
    return textwrap.indent(_dumped(values, width=10**9).rstrip("\n"), " " * column)


def _dumped(values: Mapping[str, Any], width: int = 80) -> str:
    dumped = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=width)
    if any(each in dumped for each in _UNICODE_BREAKS):
        # PyYAML writes them unescaped, and reads them as a folded line's space.
        return yaml.safe_dump(dict(values), sort_keys=False, width=width)
    return dumped


def _newline(text: str) -> str:
    return "\n" if text and not text.endswith("\n") else ""
