"""Builds Pulumi's CLI from its Go modules.

It lies in the user's cache, with what Pulumi's download has beside it: the scripts that run programs and dynamic
resources, and, in place of the official language host, ours.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from local.errors import BuildError, Report
from local.go.compiler import find_go
from local.go.modules import TOOLS, cache_directory
from local.go.tool import GoTool

LAUNCHERS: Final = Path(__file__).parent / "bin"
"""The folder of our language host's launcher."""

_MODULE: Final = "github.com/pulumi/pulumi"
_SCRIPTS: Final = ("cmd/pulumi-language-python-exec", "dist/pulumi-resource-pulumi-python")
"""Of Pulumi's SDK for Python, by their paths in sdk/v3/python."""

PULUMI: Final = GoTool(
    folder="pulumi",
    module=f"{_MODULE}/pkg/v3",
    package=f"{_MODULE}/pkg/v3/cmd/pulumi",
    takes="4 to 8 minutes on 2 cores, which the official CLI on PATH saves",
    version_variable=f"{_MODULE}/sdk/v3/go/common/version.Version",
)


def cli(report: Report) -> Path:
    """The CLI in the user's cache, with the programs that it looks for beside itself. Raises BuildError."""
    pulumi = PULUMI.binary(report)
    beside = [LAUNCHERS / "pulumi-language-python"]
    if not all((pulumi.parent / Path(script).name).exists() for script in _SCRIPTS):
        sdk = _module_folder(report) / "python"
        beside += [sdk / script for script in _SCRIPTS]
    for source in beside:
        _install(source, pulumi.parent / source.name)
    return pulumi


def _module_folder(report: Report) -> Path:
    """Where Go keeps the SDK's module, which the build has downloaded."""
    go = find_go(cache_directory(), TOOLS, report)
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", f"{_MODULE}/sdk/v3"]
    done = subprocess.run(command, cwd=TOOLS / PULUMI.folder, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        raise BuildError(f"go list of {_MODULE}/sdk/v3 failed: is Go's module cache gone?\n{done.stderr.strip()}")
    return Path(done.stdout.strip())


def _install(source: Path, target: Path) -> None:
    """Copy a script for execution, at once and only if it differs: other runs may be reading it."""
    content = source.read_bytes()
    if target.exists() and target.read_bytes() == content:
        return
    new = target.with_name(f".{target.name}.{os.getpid()}")
    new.write_bytes(content)
    new.chmod(0o755)
    new.replace(target)
