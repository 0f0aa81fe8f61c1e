"""`--config FILE`: a YAML mapping of option names, without their dashes, to values; an option on the line wins.

Values have types: times and names are text, numbers numbers, switches true or false, lists lists or text with commas.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cloud_controller import yaml_text
from cloud_controller.cli import upstream as cli_upstream
from cloud_controller.cli import values as cli_values
from cloud_controller.cloud import InvalidConfiguration


def read(path: Path, parsers: Mapping[str, argparse.ArgumentParser], command: str) -> dict[str, Any]:
    """The file's values by the options' destinations, checked; those that `command` does not have are left out.

    Raises InvalidConfiguration that names file, key and what is allowed, and OSError where the file can't be read.
    """
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise InvalidConfiguration(str(path), "it is not text") from None
    return values_of(str(path), text, parsers, command)


def values_of(file: str, text: str, parsers: Mapping[str, argparse.ArgumentParser], command: str) -> dict[str, Any]:
    """The same of a text. No value is quoted, and no key that is unknown: the file may be another than was meant.

    One file serves every command: a key that another one has is known.
    """
    here, everywhere = (
        _options(parsers[command]),
        {k: a for each in parsers.values() for k, a in _options(each).items()},
    )
    values: dict[str, Any] = {}
    document, lines = _mapping(file, text)
    for key, value in document.items():
        where = f"{file}: {key}"
        action = everywhere.get(key)
        if action is None:
            nearest = difflib.get_close_matches(key, [k for k in everywhere if k not in cli_upstream.FLAGS], n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
            # A key that was merged (`<<`) has no line of its own.
            place = f"{file}: line {lines[key]}" if key in lines else file
            raise InvalidConfiguration(place, f"unknown option{hint}")
        if key in cli_upstream.FLAGS:
            if why := cli_upstream.refusal(key, str(value).lower() if isinstance(value, bool) else str(value)):
                raise InvalidConfiguration(where, why)
            continue
        if action.dest in values:
            raise InvalidConfiguration(where, "the same option under another name stands there already")
        parsed = _parsed(where, value, action)
        if key in here:
            values[action.dest] = parsed
    return values


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Every option of the parser by its long names, without dashes; `help` and the file's own are no keys."""
    return {
        name.removeprefix("--"): action
        for name, action in parser._option_string_actions.items()
        # An action without a value (--help, --yes) is for people at a terminal.
        if name.startswith("--") and action.nargs != 0 and action.dest != "config"
    }


def _mapping(file: str, text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The document, and the line of each key."""
    try:
        document: Any = yaml_text.load(text)
    except yaml_text.NotYaml as error:
        raise InvalidConfiguration(file, str(error)) from None
    if document is None:
        return {}, {}
    tree = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(tree, yaml.MappingNode) or not all(isinstance(key, str) for key in document):
        raise InvalidConfiguration(file, "no mapping of option names to values", "for example `secure-port: 10258`")
    return {**document}, {key.value: key.start_mark.line + 1 for key, _ in tree.value}


def _parsed(where: str, value: Any, action: argparse.Action) -> Any:
    text = _text(where, value, action.type)
    convert: Callable[[str], Any] = action.type if callable(action.type) else str
    try:
        parsed = convert(text)
    except argparse.ArgumentTypeError as error:
        raise InvalidConfiguration(where, str(error)) from None
    if action.choices is not None and parsed not in action.choices:
        raise InvalidConfiguration(where, "not one of its values", ", ".join(map(str, action.choices)))
    return parsed


def _text(where: str, value: Any, kind: object) -> str:
    """The value as it would stand on the command line. Raises InvalidConfiguration for another type's."""
    types, expected = _TYPES.get(kind, _TEXT)
    if type(value) not in types or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise InvalidConfiguration(where, "not of its type", expected)
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_TEXT = (str,), "text, in quotes where it looks like a number"
_LIST = (list, str), "a list, or text with commas"
_TIME = "a time such as 30s or 5m"
# The types of YAML in which an option's value may stand, by what reads it on the command line.
_TYPES: Mapping[object, tuple[tuple[type, ...], str]] = {
    cli_values.boolean: ((bool,), "true or false"),
    cli_values.count: ((int,), "a number"),
    cli_values.count_or_none: ((int,), "a number"),
    cli_values.port: ((int,), "a number"),
    cli_values.verbosity: ((int,), "a number"),
    cli_values.rate: ((int, float), "a number"),
    cli_values.duration: ((str,), _TIME),
    # YAML's 0 stands for none.
    cli_values.duration_or_none: ((str, int), _TIME),
    cli_values.words: _LIST,
    cli_values.paths: _LIST,
    cli_values.nameable: _LIST,
}
