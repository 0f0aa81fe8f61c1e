"""Commands of CI jobs: which of them this repository does not have."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What the jobs' machines and images have themselves.
OF_THE_SYSTEM = frozenset({"echo", "printf", "pulumi", "umask"})


def missing_commands(lines: Iterable[str]) -> list[str]:
    """The commands that are neither the system's nor targets of make, scripts, or programs of the environment here."""
    return [command for line in lines for command in _commands(line) if not _exists(command)]


def _commands(line: str) -> list[str]:
    """The simple commands of a line of shell: those of `a && b`, of `(a)` and of `x=$(a)`."""
    return [part for piece in re.split(r"&&|\|\||[;|()]", re.sub(r"^\w+=\$", "", line)) if (part := piece.strip())]


def _exists(command: str) -> bool:
    program, *arguments = shlex.split(command)
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return bool(arguments) and set(arguments) <= set(targets)
    if program.startswith(".venv/bin/"):
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
        return program.removeprefix(".venv/bin/") in scripts
    return program in OF_THE_SYSTEM or ("/" in program and os.access(ROOT / program, os.X_OK))
