"""Finds promtool and prometheus on PATH, or builds them once: `python -m local.control_plane.prometheus`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from local.errors import BuildError
from local.go.tool import GoTool

_MODULE = "github.com/prometheus/prometheus"
# Service discovery by every cloud's SDK would take ten of twelve minutes to compile; static targets stay.
_TAGS = "remove_all_sd"

PROMTOOL = GoTool("prometheus", _MODULE, f"{_MODULE}/cmd/promtool", "2 minutes on 2 cores", _TAGS)
PROMETHEUS = GoTool("prometheus", _MODULE, f"{_MODULE}/cmd/prometheus", "2 minutes on 2 cores", _TAGS)


def promtool() -> Path:
    """The program that checks and tests rules. Raises BuildError if it is neither installed nor can be built."""
    return _find(PROMTOOL)


def prometheus() -> Path:
    """The server. Raises BuildError if it is neither installed nor can be built."""
    return _find(PROMETHEUS)


def _find(tool: GoTool) -> Path:
    name = tool.package.rpartition("/")[2]
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    return tool.binary(lambda line: print(f"prometheus: {line}", file=sys.stderr, flush=True))


if __name__ == "__main__":
    try:
        promtool(), prometheus()
    except BuildError as error:
        sys.exit(f"error: {error}")
