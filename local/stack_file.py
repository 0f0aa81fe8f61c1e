"""The stack file that people write: which cloud it names, and whether the program can run with it on a local site."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from cloud_controller import yaml_text
from cloud_controller.registry import Registry
from local.clouds import CLOUDS, LocalCloud
from local.pulumi.project import ProjectError, config_of, read_map, stacks_in

NAMESPACE: Final = "cloud-controller"
_CLOUD: Final = f"{NAMESPACE}:cloud"
SCHEMA: Final = Path(__file__).parents[1] / "stacks/schema.json"
"""What a stack file may hold; generated from the program's config classes."""


class StackFileError(Exception):
    """The stack file is missing, invalid or not for a local site; the message says which and what is allowed."""


def read_stack_file(source: Path) -> dict[str, Any]:
    """The content of a stack file that a local site serves, its config by full key. Raises StackFileError."""
    stack = _read(source)
    _served(source, stack["config"])
    return stack


def cloud_of(source: Path) -> tuple[LocalCloud, Mapping[str, Any]]:
    """The cloud of a stack that a local site serves, and the stack's section of it. Raises StackFileError."""
    return _served(source, _read(source)["config"])


def is_recorded(source: Path) -> bool:
    """Whether the stack's cloud is known, but no local site stands in for it. False for an invalid file."""
    try:
        config = _read(source)["config"]
    except StackFileError:
        return False
    cloud, section = config.get(_CLOUD), _section(config)
    return cloud in _known_clouds() and not (cloud in CLOUDS.names() and CLOUDS.get(cloud).serves(section))


def check_stack_file(source: Path) -> None:
    """Check the file before anything starts, so that no later error names the copy instead. Raises StackFileError."""
    config = read_stack_file(source)["config"]
    _refuse_unknown(source, config)
    known = _known_keys()
    for key, value in config.items():
        if not key.startswith(f"{NAMESPACE}:"):
            continue
        if known[key].get("required") == ["secure"] and not (isinstance(value, dict) and "secure" in value):
            name = key.removeprefix(f"{NAMESPACE}:")
            command = f'make pulumi STACK={_stack_of(source)} ARGS="config set --secret {name}"'
            raise StackFileError(f"{_place(source, key)}: {key} is in plain text; encrypt it with `{command}`")


def _read(source: Path) -> dict[str, Any]:
    if not source.exists():
        known = ", ".join(stacks_in(source.parent)) or "none"
        raise StackFileError(f"stack {_stack_of(source)!r} does not exist: no file {source}; known stacks: {known}")
    try:
        stack = read_map(source)
        if not isinstance(stack.get("config"), dict):
            raise StackFileError(f"{source} has no map `config`")
        config = config_of(stack, source, NAMESPACE)
        return {**stack, "config": {key: _plain(value) for key, value in config.items()}}
    except ProjectError as error:
        raise StackFileError(str(error)) from None


def _served(source: Path, config: Mapping[str, Any]) -> tuple[LocalCloud, Mapping[str, Any]]:
    name = config.get(_CLOUD)
    if name is None:
        _refuse_unknown(source, config)  # the key may be there, misspelt
    if name not in _known_clouds():
        wrong = "is missing" if name is None else f"is {json.dumps(name, default=str)}"
        raise StackFileError(f"{_place(source, _CLOUD)}: {_CLOUD} {wrong}; allowed: {', '.join(_known_clouds())}")
    elsewhere = "run the stack with `pulumi`"
    if name not in CLOUDS.names():
        raise StackFileError(f"{source}: there is no local site for cloud {name!r}; {elsewhere}")
    cloud, section = CLOUDS.get(name), _section(config)
    if not cloud.serves(section):
        needed = json.dumps(cloud.requires)
        raise StackFileError(f"{source}: a local site needs {needed} in {NAMESPACE}:{name}; without it, {elsewhere}")
    return cloud, section


def _section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    section = config.get(f"{NAMESPACE}:{config.get(_CLOUD)}")
    return section if isinstance(section, dict) else {}


def _plain(value: Any) -> Any:
    """A map that `pulumi config set KEY '{...}'` wrote as text."""
    try:
        return json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    except ValueError:
        return value  # the program's error says what is allowed


def _known_clouds() -> list[str]:
    return Registry("cloud_controller.clouds", object).names()


def _known_keys() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = json.loads(SCHEMA.read_text())["properties"]["config"]["properties"]
    return schema


def _refuse_unknown(source: Path, config: Iterable[str]) -> None:
    known = _known_keys()
    for key in config:
        if key.startswith(f"{NAMESPACE}:") and key not in known:
            raise StackFileError(f"{_place(source, key)}: unknown config key {key!r}{_nearest(key, known)}")


def _nearest(key: str, known: Iterable[str]) -> str:
    # Without the namespace: all keys share it, so any two would look alike.
    names = {k.partition(":")[2]: k for k in sorted(known)}
    close = difflib.get_close_matches(key.partition(":")[2], names, n=1, cutoff=0.6)
    return f"; did you mean {names[close[0]]!r}?" if close else f"; known: {', '.join(names.values())}"


def _place(source: Path, key: str) -> str:
    """The file and the line of a config key, which the file may have without the namespace."""
    lines = yaml_text.lines(source.read_text())
    line = lines.get(f"config.{key}") or lines.get(f"config.{key.partition(':')[2]}") or lines["config"]
    return f"{source}:{line}"


def _stack_of(source: Path) -> str:
    return source.name.removeprefix("Pulumi.").removesuffix(".yaml")
