"""Runs Pulumi's CLI for a project of one's own: `python -m local.pulumi COMMAND …`.

A CLI that was built here has its PULUMI_HOME in the user's cache, with the Kubernetes provider and no other.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from local.errors import BuildError
from local.go.modules import cache_directory
from local.pulumi import toolchain
from local.pulumi.cli import report, write_kubernetes


def main() -> NoReturn:
    """Replace this process by the CLI, or end it with the reason why that is impossible."""
    try:
        tools = toolchain.find(report)
        environment = {**os.environ, **tools.variables}
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
        if not tools.is_official and "PULUMI_HOME" not in environment:
            home = cache_directory() / "pulumi-home"
            write_kubernetes(tools, home)
            environment["PULUMI_HOME"] = str(home)
        os.execve(tools.pulumi, ["pulumi", *sys.argv[1:]], environment)
    except (BuildError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
