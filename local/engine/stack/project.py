"""The files of project and stack: Pulumi.yaml and Pulumi.STACK.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloud_controller import yaml_text
from local.engine.stack.declarations import ConfigKey, DeclarationError, declarations


class ProjectError(Exception):
    """The project's or stack's file is invalid; the message names the file, the key and what is allowed."""


@dataclass(frozen=True, slots=True)
class Project:
    """The part of Pulumi.yaml that the engine needs."""

    name: str
    directory: Path
    main: Path
    stack_config_dir: Path
    schema: Mapping[str, ConfigKey] = field(default_factory=dict)
    """By full key (`project:key`)."""


@dataclass(frozen=True, slots=True)
class StackFile:
    """Pulumi.STACK.yaml: the raw config (secure values still encrypted) and the salt of its passphrase."""

    stack: str
    path: Path
    config: Mapping[str, Any]
    """By full key."""
    salt: str = ""
    written: frozenset[str] = frozenset()
    """The keys as the file spells them: the project's own may lack its namespace."""


def load_project(directory: Path) -> Project:
    """Read Pulumi.yaml. Raises ProjectError."""
    path = directory / "Pulumi.yaml"
    data = read_map(path)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ProjectError(f"{path}: `name` is missing")
    runtime = data.get("runtime")
    runtime_name = runtime.get("name") if isinstance(runtime, dict) else runtime
    if runtime_name != "python":
        raise ProjectError(f"{path}: runtime is {runtime_name!r}; this engine supports only `python`")
    config = data.get("config") or {}
    if not isinstance(config, dict):
        raise ProjectError(f"{path}: `config` must be a map of keys to their types")
    try:
        schema = declarations(name, config)
    except DeclarationError as error:
        raise ProjectError(f"could not {error.verb} '{path}': {error}") from error
    main = directory / str(data.get("main") or ".")
    return Project(name, directory, main, directory / str(data.get("stackConfigDir") or "."), schema)


def load_stack_file(project: Project, stack: str, path: Path | None = None) -> StackFile:
    """Read the stack's file: `path`, or Pulumi.STACK.yaml in the project's stackConfigDir. Raises ProjectError."""
    chosen = path or project.stack_config_dir / f"Pulumi.{stack}.yaml"
    if not chosen.exists():
        known = stacks_in(project.stack_config_dir)
        hint = f"; there are: {', '.join(known)}" if known else ""
        raise ProjectError(f"stack {stack!r} has no file {chosen}{hint}")
    data = read_map(chosen)
    config = data.get("config") or {}
    if not isinstance(config, dict):
        raise ProjectError(f"{chosen}: `config` must be a map of keys to values")
    qualified = {qualify(str(key), project.name): value for key, value in config.items()}
    return StackFile(stack, chosen, qualified, str(data.get("encryptionsalt") or ""), frozenset(map(str, config)))


def stacks_in(directory: Path) -> list[str]:
    """The names of the stacks that have a file in the folder."""
    return sorted(path.name.split(".")[1] for path in directory.glob("Pulumi.*.yaml"))


def read_map(path: Path) -> dict[str, Any]:
    """The map in a YAML file; empty for an empty file. Raises ProjectError."""
    try:
        data = yaml_text.load(path.read_text())
    except FileNotFoundError as error:
        raise ProjectError(f"{path} does not exist") from error
    except OSError as error:
        raise ProjectError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ProjectError(f"{path} is not UTF-8 text") from None
    except yaml_text.NotYaml as error:
        raise ProjectError(f"{path} is {error}") from None
    if not isinstance(data or {}, dict):
        raise ProjectError(f"{path} must hold a map")
    return data or {}


def qualify(key: str, project: str) -> str:
    """The key with its namespace: a key without one is the project's."""
    return key if ":" in key else f"{project}:{key}"
