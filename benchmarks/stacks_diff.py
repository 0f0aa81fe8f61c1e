"""How long `cloud-stacks diff` takes for every stack of the project: base and head, with the policies."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figure import Figure

ROOT = Path(__file__).parents[1]
PROMISED_SECONDS = 180.0


def measure() -> list[Figure]:
    """One run; the base is the commit itself, so the report is quiet."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "cloud_stacks", "diff", "--base", "HEAD"], cwd=ROOT, check=True)
    return [Figure("stacks-diff", time.monotonic() - started, "s", PROMISED_SECONDS)]
