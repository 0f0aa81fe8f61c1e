"""Builds Pulumi's CLI and its Kubernetes provider from their Go modules: `python -m local.pulumi.builds`.

They lie in the user's cache, the CLI with what Pulumi's download has beside it: the scripts that run programs and
dynamic resources, and, in place of the official language host, ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from local.errors import BuildError, Report
from local.go.compiler import find_go
from local.go.modules import TOOLS, cache_directory
from local.go.tool import GoTool
from local.pulumi.toolchain import LAUNCHERS, Toolchain, find

_MODULE: Final = "github.com/pulumi/pulumi"
_KUBERNETES: Final = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_SCRIPTS: Final = ("cmd/pulumi-language-python-exec", "dist/pulumi-resource-pulumi-python")
"""Of Pulumi's SDK for Python, by their paths in sdk/v3/python."""

_DOWNLOAD_SECONDS: Final = 180.0

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


def kubernetes_provider(tools: Toolchain, report: Report) -> Path | None:
    """The program of Pulumi's Kubernetes provider, in the version that the Python package asks for.

    The user's own, or the one in the cache, or what the CLI on PATH downloads; None: building it takes too long for a
    first run.
    """
    tool = _kubernetes()
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    theirs = home / "plugins" / f"resource-kubernetes-v{tool.stamped}" / tool.program
    if not theirs.exists() and tool.is_built():
        return tool.binary(report)
    return theirs if theirs.exists() or (_downloads(tools, tool.stamped, report) and theirs.exists()) else None


def build_kubernetes_provider(report: Report) -> Path:
    """The same in the user's cache, built if it is missing. Raises BuildError."""
    return _kubernetes().binary(report)


def _kubernetes() -> GoTool:
    return GoTool(
        folder="pulumi-kubernetes",
        module=_KUBERNETES,
        package=".",
        takes="6 to 12 minutes on 2 cores",
        program="pulumi-resource-kubernetes",
        version_variable=f"{_KUBERNETES}/pkg/version.Version",
        # The CLI compares it with what the package asks for; no later commit is a Go module.
        stamped=version("pulumi-kubernetes"),
    )


def _downloads(tools: Toolchain, wanted: str, report: Report) -> bool:
    """Whether the CLI on PATH has downloaded the Kubernetes provider; one that was built has no network here."""
    if not tools.is_official or os.environ.get("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"):
        return False
    command = [str(tools.pulumi), "plugin", "install", "resource", "kubernetes", wanted]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_SECONDS)
    except subprocess.TimeoutExpired:
        report("Pulumi's Kubernetes provider takes too long to download")
        return False
    if done.returncode != 0:
        report(f"Pulumi's Kubernetes provider cannot be downloaded: {done.stderr.strip()}")
    return done.returncode == 0


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


def main() -> int:
    """Find or build the CLI; with `--kubernetes`, its Kubernetes provider too. The exit code is 1 if that fails."""

    def report(line: str) -> None:
        print(f"pulumi: {line}", file=sys.stderr, flush=True)

    try:
        tools = find(report)
        if "--kubernetes" in sys.argv[1:] and kubernetes_provider(tools, report) is None:
            build_kubernetes_provider(report)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
