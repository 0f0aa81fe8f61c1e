"""Reads `--config FILE`: a YAML mapping of option names, without dashes, to values. The command line wins.

Values are typed: durations and names are strings, counts are numbers, flags are true or false, and lists are lists or
comma-separated strings.
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
    """The file's values, validated, by argparse destination. Options that `command` does not have are left out.

    Raises InvalidConfiguration, naming file, key and what is allowed, and OSError if the file cannot be read.
    """
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        raise InvalidConfiguration(str(path), "not a UTF-8 text file") from None
    return values_of(str(path), text, parsers, command)


def values_of(file: str, text: str, parsers: Mapping[str, argparse.ArgumentParser], command: str) -> dict[str, Any]:
    """Like `read`, for a text. One file serves every command, so a key of any command is accepted.

    Errors quote neither values nor unknown keys: the user may have named the wrong file, and it may hold secrets.
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
            # A merged key (`<<`) has no line of its own.
            place = f"{file}: line {lines[key]}" if key in lines else file
            raise InvalidConfiguration(place, f"unknown option{hint}")
        if key in cli_upstream.FLAGS:
            if why := cli_upstream.refusal(key, str(value).lower() if isinstance(value, bool) else str(value)):
                raise InvalidConfiguration(where, why)
            continue
        if action.dest in values:
            raise InvalidConfiguration(where, "duplicate option: it is also set under another name")
        parsed = _parsed(where, value, action)
        if key in here:
            values[action.dest] = parsed
    return values


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The parser's options by long name, without dashes."""
    return {
        name.removeprefix("--"): action
        for name, action in parser._option_string_actions.items()
        # Options without a value (--help, --yes), and files to read, only make sense on the command line.
        if name.startswith("--") and action.nargs != 0 and action.dest not in ("config", "filename", "against")
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
        raise InvalidConfiguration(file, "not a mapping of option names to values", "for example `secure-port: 10258`")
    return {**document}, {key.value: key.start_mark.line + 1 for key, _ in tree.value}


def _parsed(where: str, value: Any, action: argparse.Action) -> Any:
    text = _text(where, value, action.type)
    convert: Callable[[str], Any] = action.type if callable(action.type) else str
    try:
        parsed = convert(text)
    except argparse.ArgumentTypeError as error:
        raise InvalidConfiguration(where, str(error)) from None
    if action.choices is not None and parsed not in action.choices:
        raise InvalidConfiguration(where, "not an allowed value", ", ".join(map(str, action.choices)))
    return parsed


def _text(where: str, value: Any, kind: object) -> str:
    """The value as it would be written on the command line. Raises InvalidConfiguration for a wrong type."""
    types, expected = _TYPES.get(kind, _TEXT)
    if type(value) not in types or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        raise InvalidConfiguration(where, "wrong type", expected)
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_TEXT = (str,), "a string; quote it if it looks like a number"
_LIST = (list, str), "a list or a comma-separated string"
_TIME = "a duration such as 30s or 5m"
# The YAML types that an option accepts, by the function that parses it on the command line.
_TYPES: Mapping[object, tuple[tuple[type, ...], str]] = {
    cli_values.boolean: ((bool,), "true or false"),
    cli_values.count: ((int,), "a number"),
    cli_values.count_or_none: ((int,), "a number"),
    cli_values.port: ((int,), "a number"),
    cli_values.verbosity: ((int,), "a number"),
    cli_values.rate: ((int, float), "a number"),
    cli_values.duration: ((str,), _TIME),
    # A bare 0 in YAML is an int.
    cli_values.duration_or_none: ((str, int), _TIME),
    cli_values.words: _LIST,
    cli_values.paths: _LIST,
    cli_values.nameable: _LIST,
}
