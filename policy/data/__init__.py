"""Facts of other people's that change with time, each file with its date and its sources; and one of our own.

- `limits.json`: quotas of clouds.
- `upgrades.json`: changes of cloud controller managers that need something done before an upgrade.

Those that `cloud-controller doctor` reads too are in `cloud_controller.known_versions`.

- `doctor.json`: the checks of `cloud-controller doctor`, made by `make docs`: rules import no controller.

`as_of` is the day on which a file was last compared with its sources; whoever looks again sets it, changed or not.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """The file's content."""
    found: dict[str, Any] = json.loads((files(__name__) / f"{name}.json").read_text())
    return found
