"""Finds Pulumi's Kubernetes provider, or builds it and the CLI: `python -m local.pulumi.kubernetes_provider`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

from local.errors import BuildError, Report
from local.go.tool import GoTool
from local.pulumi import toolchain
from local.pulumi.toolchain import Toolchain

_MODULE: Final = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_DOWNLOAD_SECONDS: Final = 180.0


def find(tools: Toolchain, report: Report) -> Path | None:
    """The provider's program, in the version that the Python package asks for.

    The user's own, or the one in the cache, or what the CLI on PATH downloads; None: building it takes too long for a
    first run.
    """
    tool = _tool()
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    theirs = home / "plugins" / f"resource-kubernetes-v{tool.stamped}" / tool.program
    if not theirs.exists() and tool.is_built():
        return tool.binary(report)
    return theirs if theirs.exists() or (_downloads(tools, tool.stamped, report) and theirs.exists()) else None


def build(report: Report) -> Path:
    """The same in the user's cache, built if it is missing. Raises BuildError."""
    return _tool().binary(report)


def _tool() -> GoTool:
    return GoTool(
        folder="pulumi-kubernetes",
        module=_MODULE,
        package=".",
        takes="6 to 12 minutes on 2 cores",
        program="pulumi-resource-kubernetes",
        version_variable=f"{_MODULE}/pkg/version.Version",
        # The CLI compares it with what the package asks for; no later commit is a Go module.
        stamped=version("pulumi-kubernetes"),
    )


def _downloads(tools: Toolchain, wanted: str, report: Report) -> bool:
    """Whether the CLI on PATH has downloaded the provider; one that was built has no network here."""
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


def main() -> int:
    """Find or build the CLI and its Kubernetes provider. The exit code is 1 if that fails."""

    def report(line: str) -> None:
        print(f"pulumi: {line}", file=sys.stderr, flush=True)

    try:
        if find(toolchain.find(report), report) is None:
            build(report)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
