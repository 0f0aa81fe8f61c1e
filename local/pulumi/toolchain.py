"""Finds Pulumi's CLI: on PATH, else the one that `builds` makes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from local.errors import BuildError, Report

OLDEST: Final = (3, 226)
"""The oldest CLI that runs the project."""
PYTHON: Final = "CLOUD_CONTROLLER_PYTHON"
"""The environment variable by which the launchers find the interpreter with our modules."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A CLI, and the variables that its runs need so that it finds its parts; none for an official one."""

    pulumi: Path
    variables: Mapping[str, str]

    @property
    def is_official(self) -> bool:
        """Whether it comes from PATH, with its own language host."""
        return not self.variables


def find(report: Report) -> Toolchain:
    """The CLI on PATH if it is new enough, else the one in the user's cache, which is built if it is missing.

    Raises BuildError.
    """
    path = os.environ.get("PATH", os.defpath)
    if (found := shutil.which("pulumi", path=path)) is not None:
        if not (wrong := _wrong(Path(found), path)):
            return Toolchain(Path(found), {})
        report(f"{found} {wrong}: not used")
    if find_spec(f"{__package__}.builds") is None:  # a wheel has no Go modules
        needed = f"version {'.'.join(map(str, OLDEST))} or newer"
        raise BuildError(f"Pulumi's CLI, {needed}, is not on PATH: install it by https://www.pulumi.com/docs/install/")
    # Imported on use: for the CLI on PATH, nothing is built.
    from local.pulumi import builds

    pulumi = builds.cli(report)
    return Toolchain(pulumi, {"PATH": os.pathsep.join([str(pulumi.parent), path]), PYTHON: sys.executable})


def cli_version(pulumi: Path) -> tuple[int, ...] | None:
    """What the CLI calls itself; None if it does not run."""
    try:
        done = subprocess.run([pulumi, "version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, match.groups())) if match else None


def _wrong(pulumi: Path, path: str) -> str:
    """Why a CLI on PATH cannot be used; "" if it can."""
    version = cli_version(pulumi)
    if version is None:
        return "does not say its version"
    if version < OLDEST:
        return f"is older than {'.'.join(map(str, OLDEST))}"
    name = "pulumi-language-python"
    if shutil.which(name, path=path) is None and not (pulumi.resolve().parent / name).exists():
        return f"has no {name}"
    return ""
