"""The Python of a run's processes: of the program, of the dynamic provider, and of policy packs that name none."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The engine's own, unless a commit is planned that has other requirements."""

    path: str = sys.executable
    first: Path | None = None
    """The folder whose modules come before those that are installed: the commit's."""

    def environment(self) -> dict[str, str]:
        """The processes' environment."""
        if self.first is None:
            return dict(os.environ)
        paths = [str(self.first), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
