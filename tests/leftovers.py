"""What killed runs of the tests left: their sites run on, and hold blocks of addresses that the next runs need."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from local.addresses import BLOCK_BASES, AddressBlock
from local.blocks import BlockRegistry

# pytest's folder of a run, and its lock: the pid of the run, and gone when the run ends as it should.
_RUN = re.compile(r".*/pytest-of-[^/]+/pytest-\d+(?=/)")
_LOCK = ".lock"


def remove_sites_of_ended_runs(registry: BlockRegistry) -> list[Path]:
    """Delete the folders of sites whose run of pytest has ended, and tell which: such a site ends by itself."""
    owners = {registry.owner(AddressBlock(base)) for base in BLOCK_BASES}
    left = sorted(owner for owner in owners if owner is not None and _run_has_ended(owner))
    for owner in left:
        shutil.rmtree(owner)
    return left


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
