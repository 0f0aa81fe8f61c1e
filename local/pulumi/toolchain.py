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
LAUNCHERS: Final = Path(__file__).parent / "bin"
"""The folder of our language host's launcher."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A CLI, and the variables that its runs need so that it finds its parts."""

    pulumi: Path
    variables: Mapping[str, str]


def find(report: Report) -> Toolchain:
    """The CLI on PATH if it is new enough, else the one in the user's cache, which is built if it is missing.

    Raises BuildError.
    """
    path = os.environ.get("PATH", os.defpath)
    if (found := shutil.which("pulumi", path=path)) is not None:
        if (known := cli_version(Path(found))) is not None and known >= OLDEST:
            return Toolchain(Path(found), _without_language_host(Path(found), path))
        report(f"{found} is older than {'.'.join(map(str, OLDEST))}: not used")
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


def _without_language_host(pulumi: Path, path: str) -> dict[str, str]:
    """Ours last on PATH, where the CLI's own language host is neither there nor beside the CLI."""
    name = "pulumi-language-python"
    if shutil.which(name, path=path) or (pulumi.resolve().parent / name).exists():
        return {}
    return {"PATH": os.pathsep.join([path, str(LAUNCHERS)]), PYTHON: sys.executable}
