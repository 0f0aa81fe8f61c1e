"""Pulumi's CLI on PATH, for what finds it there: programs that are not of this checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from local.pulumi import toolchain


def path_with_cli(folder: Path) -> str:
    """PATH with the CLI first. Where its own language host is missing, `folder` gets one: this checkout's."""
    tools = toolchain.find(print)
    path = tools.variables.get("PATH", os.environ["PATH"])
    if toolchain.PYTHON not in tools.variables:
        return path
    launcher = folder / "bin-of-cli" / "pulumi-language-python"
    launcher.parent.mkdir(exist_ok=True)
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m local.pulumi.language_host "$@"\n')
    launcher.chmod(0o755)
    return os.pathsep.join([str(launcher.parent), path])
