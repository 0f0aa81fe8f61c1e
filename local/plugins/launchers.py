"""The launchers by which Pulumi's CLI finds our plugins. It imports little: every command of a site loads it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from local.errors import BuildError

DYNAMIC: Final = "pulumi-python"
"""The package of dynamic resources."""


@cache
def installed(python: str = sys.executable) -> Mapping[str, str]:
    """The versions of the packages whose SDKs an interpreter has. Raises BuildError."""
    folders = sys.path if python == sys.executable else _folders_of(python)
    files = [file for folder in folders for file in Path(folder).glob("pulumi_*/pulumi-plugin.json")]
    plugins = [json.loads(file.read_text()) for file in files]
    return {each["name"]: each["version"] for each in plugins if each.get("resource") and "version" in each}


def write_launchers(home: Path, versions: Mapping[str, str]) -> None:
    """Write the plugins of these packages, by name with the SDK's version, into a PULUMI_HOME."""
    for name, version in versions.items():
        _write_launcher(_in_cache(home, name, version), name)


def write_offline_launchers(home: Path, versions: Mapping[str, str], python: str) -> Path:
    """The same for a run that records everything. Returns the folder that must be first on PATH.

    It has the plugin of dynamic resources, which the CLI otherwise takes from its own folder. `python`: the program's.
    """
    for name, version in versions.items():
        _write_launcher(_in_cache(home, name, version), name, "--offline", python)
    first = home / "bin"
    _write_launcher(first / f"pulumi-resource-{DYNAMIC}", DYNAMIC, "--offline", python)
    return first


def _folders_of(python: str) -> list[str]:
    code = "import json, sys; print(json.dumps(sys.path))"
    found = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise BuildError(f"{python} does not run: {found.stderr.strip()}")
    folders: list[str] = json.loads(found.stdout)
    return folders


def _in_cache(home: Path, name: str, version: str) -> Path:
    return home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _write_launcher(file: Path, *arguments: str) -> None:
    # Isolated: the modules of the program's folder must not replace ours.
    command = shlex.join([sys.executable, "-I", "-m", __package__, *arguments])
    script = f'#!/bin/sh\nexec {command} "$@"\n'
    if file.is_file() and not file.is_symlink() and file.read_text() == script:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(script)
    new.chmod(0o755)
    new.replace(file)  # at once: another run may be starting it
