"""What killed runs of the tests left: their sites run on, and hold blocks of addresses that the next runs need."""

from __future__ import annotations

import os
import re
from pathlib import Path

from local.blocks import BlockRegistry

# pytest's folder of a run, and its lock: the pid of the run, and gone when the run ends as it should.
_RUN = re.compile(r".*/pytest-of-[^/]+/pytest-\d+(?=/)")
_LOCK = ".lock"


def move_sites_of_ended_runs(registry: BlockRegistry) -> list[Path]:
    """Move away the folders of sites whose run of pytest has ended, and tell where to: a running site ends by that.

    Not file by file, which its processes would notice in the middle; pytest deletes what it keeps of old runs.
    """
    left = (owner for owner in registry.owners().values() if _run_has_ended(owner))
    return [moved for owner in left if (moved := _moved(owner))]


def _moved(site: Path) -> Path | None:
    try:
        # A process that has just ended may have made it again.
        return site.rename(site.with_name(f"{site.name}-of-ended-run-{os.getpid()}"))
    except FileNotFoundError:
        return None  # another run, begun at the same time, was quicker


def _run_has_ended(path: Path) -> bool:
    """Whether a run of pytest made the path, and is over; what no run of pytest made is none of ours."""
    run = _RUN.match(str(path))
    if run is None:
        return False
    try:
        pid = int(Path(run[0], _LOCK).read_text())
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (PermissionError, ValueError):
        return False  # it lives, as another user's, or is just beginning
    return False
