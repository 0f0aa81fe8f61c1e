"""Reads the files that Pulumi's CLI reads: Pulumi.yaml and the stack files, as far as others need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloud_controller import yaml_text


class ProjectError(Exception):
    """A project's or stack's file is invalid; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class Project:
    """Pulumi.yaml: the project's name, its folder and the folder of its stack files."""

    name: str
    directory: Path
    stack_config_dir: Path

    def stack_file(self, stack: str) -> Path:
        """Where the stack's file is."""
        return self.stack_config_dir / f"Pulumi.{stack}.yaml"


def load_project(directory: Path) -> Project:
    """Read Pulumi.yaml. Raises ProjectError."""
    path = directory / "Pulumi.yaml"
    data = read_map(path)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ProjectError(f"{path}: `name` is missing")
    return Project(name, directory, directory / str(data.get("stackConfigDir") or "."))


def stacks_in(directory: Path) -> list[str]:
    """The names of the stacks that have a file in the folder."""
    return sorted(path.name.split(".")[1] for path in directory.glob("Pulumi.*.yaml"))


def config_of(stack_file: Mapping[str, Any], path: Path, project: str) -> dict[str, Any]:
    """The config of a stack file, by full key (`project:key`). Raises ProjectError."""
    config = stack_file.get("config") or {}
    if not isinstance(config, dict):
        raise ProjectError(f"{path}: `config` must be a map of keys to values")
    return {qualify(str(key), project): value for key, value in config.items()}


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
