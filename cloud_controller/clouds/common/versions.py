"""What the version matrix of a vendor's cloud controller manager says about a pair of versions."""

from __future__ import annotations

import re

from cloud_controller.clouds.descriptor import Verdict as Verdict


def minor(version: str) -> int | None:
    """The number of a 1.x version: 36 of `1.36`, `v1.36.4` and `1.36.1-vendor.1`; None if it is no such version."""
    found = re.fullmatch(r"v?1\.(\d+)(\..*)?", version)
    return int(found[1]) if found else None
