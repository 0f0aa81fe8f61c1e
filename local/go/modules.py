"""Where the pinned Go modules are, what they require, and where their programs lie."""

from __future__ import annotations

import os
import re
from pathlib import Path

from local.errors import BuildError

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def cache_directory() -> Path:
    """The user's cache for this project: $XDG_CACHE_HOME/cloud-controller or ~/.cache/cloud-controller."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification requires relative paths to be ignored.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "cloud-controller"


def required_version(go_mod: Path, module: str) -> str:
    """The version of a module that another requires, as in `v1.37.2`. Raises BuildError if it requires none."""
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", go_mod.read_text(), re.MULTILINE)
    if match is None:
        raise BuildError(f"{go_mod} does not require {module}")
    return match[1]
